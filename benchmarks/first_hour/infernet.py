"""First models: tutorials of Infer.NET, the book Model-Based Machine Learning (MBML), examples of RxInfer, and others.

Each function gives a model as one would write it down, and its data; what is not typed in is simulated by a seeded
generator.
"""

import numpy as np

import cavity as cv

# Tutorials of Infer.NET -----------------------------------------------------------------------------------------------


def two_coins():
    """Two fair coins, not both heads: Infer.NET, tutorial 1."""
    m = cv.Model("two coins")
    first = m.random("first", cv.bernoulli(0.5))
    second = m.random("second", cv.bernoulli(0.5))
    m.let("both", first & second)
    return m, {"both": False}


def truncated_gaussian():
    """A standard Gaussian that is known to exceed one half: Infer.NET, tutorial 2."""
    m = cv.Model("truncated Gaussian")
    x = m.random("x", cv.gaussian(0.0, variance=1.0))
    m.constrain(x > 0.5)
    return m, {}


def learning_a_gaussian():
    """Mean and precision from 100 standard Gaussian numbers: Infer.NET, tutorial 3."""
    m = cv.Model("learning a Gaussian")
    mean = m.random("mean", cv.gaussian(0.0, variance=100.0))
    precision = m.random("precision", cv.gamma(1.0, 1.0))
    m.random("x", cv.gaussian(mean, precision=precision), plates=m.plate("n"))
    return m, {"x": np.random.default_rng(0).normal(size=100)}


def bayes_point_machine():
    """Who will buy, by income and age, with noise of variance one tenth: Infer.NET, tutorial 4."""
    m = cv.Model("Bayes point machine")
    x = m.input("x", cv.vector(3), plates=m.plate("person"))
    w = m.random("w", cv.vector_gaussian(np.zeros(3), covariance=np.eye(3)))
    m.random("buys", cv.bernoulli(cv.probit((w @ x) / np.sqrt(0.1))))
    income, age = [63.0, 16.0, 28.0, 55.0, 22.0, 20.0], [38.0, 23.0, 40.0, 27.0, 18.0, 40.0]
    return m, {"x": np.column_stack([income, age, np.ones(6)]), "buys": [True, False, True, True, False, False]}


def clinical_trial():
    """Is the treatment effective? Two groups share a chance of recovery, or do not: Infer.NET, tutorial 5."""
    m = cv.Model("clinical trial")
    effective = m.random("effective", cv.bernoulli(0.5))
    if_all, if_control, if_treated = (
        m.random(f"if {name}", cv.beta(1.0, 1.0)) for name in ("all", "control", "treated")
    )
    m.random(
        "control", cv.switch(effective, cv.bernoulli(if_control), cv.bernoulli(if_all)), plates=m.plate("controls")
    )
    m.random(
        "treated", cv.switch(effective, cv.bernoulli(if_treated), cv.bernoulli(if_all)), plates=m.plate("patients")
    )
    return m, {"control": [False, False, True, False, False], "treated": [True, False, True, True, True]}


def mixture_of_gaussians():
    """Two clusters in the plane, 100 points; Wishart precisions: Infer.NET, tutorial 6."""
    m = cv.Model("mixture of Gaussians")
    k, n = m.plate("k", 2), m.plate("n")
    weights = m.random("weights", cv.dirichlet(np.ones(2)))
    mean = m.random("mean", cv.vector_gaussian(np.zeros(2), precision=0.01 * np.eye(2)), plates=k)
    precision = m.random("precision", cv.wishart(dof=4.0, scale=0.25 * np.eye(2)), plates=k)
    z = m.random("z", cv.categorical(weights), plates=n)
    m.random("x", cv.vector_gaussian(mean[z], precision=precision[z]))
    rng = np.random.default_rng(1)
    first = rng.multivariate_normal([2.0, 3.0], [[3.0, 0.2], [0.2, 2.0]], 60)
    return m, {"x": np.vstack([first, rng.multivariate_normal([7.0, 5.0], [[2.0, 0.4], [0.4, 4.0]], 40)])}


def cyclist():
    """Travel times of three days, and that of tomorrow: Infer.NET, introduction by examples."""
    m = cv.Model("cyclist")
    average = m.random("average", cv.gaussian(15.0, variance=100.0))
    noise = m.random("noise", cv.gamma(2.0, 2.0))
    m.random("time", cv.gaussian(average, precision=noise), plates=m.plate("day"))
    m.random("tomorrow", cv.gaussian(average, precision=noise))
    return m, {"time": [13.0, 17.0, 16.0]}


def cyclist_mixture():
    """Ordinary and extraordinary days of travel: Infer.NET, introduction by examples."""
    m = cv.Model("cyclist, two kinds of days")
    kind, day = m.plate("kind", 2), m.plate("day")
    usual = m.input("usual", cv.real, plates=kind)
    average = m.random("average", cv.gaussian(usual, variance=100.0))
    noise = m.random("noise", cv.gamma(2.0, 2.0), plates=kind)
    mixing = m.random("mixing", cv.dirichlet(np.ones(2)))
    z = m.random("z", cv.categorical(mixing), plates=day)
    m.random("time", cv.gaussian(average[z], precision=noise[z]))
    return m, {"usual": [15.0, 30.0], "time": [13.0, 17.0, 16.0, 12.0, 13.0, 12.0, 14.0, 18.0, 16.0, 16.0, 27.0, 32.0]}


def five_players():
    """Skills of five players from six games: the first example on the page of Infer.NET."""
    m = cv.Model("five players")
    player, game = m.plate("player", 5), m.plate("game")
    winner = m.input("winner", cv.index(player), plates=game)
    loser = m.input("loser", cv.index(player), plates=game)
    skill = m.random("skill", cv.gaussian(6.0, variance=9.0), plates=player)
    winning = m.random("winning", cv.gaussian(skill[winner], variance=1.0))
    losing = m.random("losing", cv.gaussian(skill[loser], variance=1.0))
    m.constrain(winning > losing)
    return m, {"winner": [0, 0, 0, 1, 3, 4], "loser": [1, 3, 4, 2, 1, 2]}


def difficulty_and_ability():
    """Ten students answer eight questions of four choices each; no key is given: Infer.NET."""
    m = cv.Model("difficulty and ability")
    student, question = m.plate("student"), m.plate("question")
    guess = m.input("guess", cv.simplex(4), plates=(m.plate("knows", 2), m.plate("choice", 4)))
    ability = m.random("ability", cv.gaussian(0.0, variance=1.0), plates=student)
    difficulty = m.random("difficulty", cv.gaussian(0.0, variance=1.0), plates=question)
    key = m.random("key", cv.discrete_uniform(4), plates=question)
    knows = m.random("knows it", cv.bernoulli(cv.probit(ability - difficulty)))
    m.random("answer", cv.categorical(guess[knows][key]))
    rng = np.random.default_rng(2)
    can = rng.normal(size=(10, 1)) - rng.normal(size=8) + rng.normal(size=(10, 8)) > 0
    answer = np.where(can, rng.integers(4, size=8), rng.integers(4, size=(10, 8)))
    return m, {"guess": [np.full((4, 4), 0.25), np.eye(4)], "answer": answer}


def gaussian_process_classifier():
    """Six points of the plane in two classes: Infer.NET, Gaussian process classifier."""
    m = cv.Model("Gaussian process classifier")
    x = m.input("x", cv.vector(2), plates=m.plate("n"))
    f = m.random("f", cv.gaussian_process(x, cv.kernels.squared_exponential(scale=1.0)))
    score = m.random("score", cv.gaussian(f, variance=0.1))
    m.let("y", score > 0)
    points = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 0.5], [1.5, 0.0], [0.5, 1.0]]
    return m, {"x": points, "y": [True, True, False, True, False, False]}


def multinomial_regression():
    """Three classes by softmax of two features: Infer.NET, multinomial regression."""
    m = cv.Model("multinomial regression")
    k, n = m.plate("class", 3), m.plate("n")
    x = m.input("x", cv.vector(2), plates=n)
    w = m.random("w", cv.vector_gaussian(np.zeros(2), covariance=np.eye(2)), plates=k)
    bias = m.random("bias", cv.gaussian(0.0, variance=1.0), plates=k)
    m.random("y", cv.categorical(cv.softmax(w @ x + bias, over=k)))
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(60, 2))
    score = rows @ np.array([[1.0, -1.0, 0.0], [0.5, 0.5, -1.0]]) + [0.0, 0.5, -0.5] + rng.gumbel(size=(60, 3))
    return m, {"x": rows, "y": score.argmax(axis=1)}


def recommender():
    """Two traits of users and films; two films fix the traits: Infer.NET, recommender system."""
    m = cv.Model("recommender")
    trait, user, film = m.plate("trait", 2), m.plate("user", 10), m.plate("film", 6)
    rating = m.plate("rating")
    who, what = m.input("who", cv.index(user), plates=rating), m.input("what", cv.index(film), plates=rating)
    taste = m.random("taste", cv.gaussian(0.0, variance=1.0), plates=(user, trait))
    style = m.random("style", cv.gaussian(0.0, variance=1.0), plates=(film, trait))
    bias = m.random("bias", cv.gaussian(0.0, variance=1.0), plates=film)
    m.random("stars", cv.gaussian(cv.sum(taste[who] * style[what], over=trait) + bias[what], variance=0.5))
    rng = np.random.default_rng(4)
    styles = np.vstack([np.eye(2), rng.normal(size=(4, 2))])
    given = {"who": np.repeat(np.arange(10), 5), "what": np.concatenate([rng.permutation(6)[:5] for _ in range(10)])}
    stars = np.sum(rng.normal(size=(10, 2))[given["who"]] * styles[given["what"]], axis=1)
    stars = stars + rng.normal(size=6)[given["what"]] + rng.normal(0.0, np.sqrt(0.5), 50)
    return m, {**given, "style": np.vstack([np.eye(2), np.full((4, 2), np.nan)]), "stars": stars}


# Model-Based Machine Learning -----------------------------------------------------------------------------------------


def murder_mystery():
    """Who did it, by weapon and a hair that was found: MBML, chapter 1."""
    m = cv.Model("murder mystery")
    auburn = m.random("auburn", cv.bernoulli(0.7))
    m.random("revolver", cv.switch(auburn, cv.bernoulli(0.2), cv.bernoulli(0.9)))
    m.random("hair", cv.switch(auburn, cv.bernoulli(0.05), cv.bernoulli(0.5)))
    return m, {"revolver": True, "hair": True}


def three_questions():
    """Two skills, three questions that need one or both of them; slips and guesses: MBML, chapter 2."""
    m = cv.Model("three questions")
    csharp, sql = m.random("csharp", cv.bernoulli(0.5)), m.random("sql", cv.bernoulli(0.5))
    both = m.let("both", csharp & sql)
    for question, able in enumerate((csharp, sql, both)):
        m.random(f"correct {question}", cv.switch(able, cv.bernoulli(0.9), cv.bernoulli(0.2)))
    return m, {"correct 0": True, "correct 1": False, "correct 2": False}


def assessing_skills():
    """Twenty people, two skills, six questions; the chances of a guess are learned: MBML, chapter 2."""
    m = cv.Model("assessing skills")
    person = m.plate("person")
    csharp = m.random("csharp", cv.bernoulli(0.5), plates=person)
    sql = m.random("sql", cv.bernoulli(0.5), plates=person)
    guess = [m.random(f"guess {i}", cv.beta(2.5, 7.5)) for i in range(6)]
    for i, able in enumerate((csharp, sql, csharp & sql, csharp, sql, csharp & sql)):
        m.random(f"correct {i}", cv.switch(able, cv.bernoulli(0.9), cv.bernoulli(guess[i])), plates=person)
    rng = np.random.default_rng(5)
    first, second = rng.random(20) < 0.6, rng.random(20) < 0.4
    needs = (first, second, first & second, first, second, first & second)
    return m, {f"correct {i}": rng.random(20) < np.where(able, 0.9, 0.25) for i, able in enumerate(needs)}


def jill_and_fred():
    """One game of Halo between an expert and a beginner, won by the beginner: MBML, chapter 3."""
    m = cv.Model("Jill and Fred")
    jill, fred = m.random("jill", cv.gaussian(120.0, sd=40.0)), m.random("fred", cv.gaussian(100.0, sd=5.0))
    jill_plays, fred_plays = (
        m.random("jill plays", cv.gaussian(jill, sd=5.0)),
        m.random("fred plays", cv.gaussian(fred, sd=5.0)),
    )
    m.let("jill wins", jill_plays > fred_plays)
    return m, {"jill wins": False}


def games_with_draws():
    """Three players, four games of which one is a draw: MBML, chapter 3."""
    m = cv.Model("games with draws")
    player, game = m.plate("player", 3), m.plate("game")
    one, other = m.input("one", cv.index(player), plates=game), m.input("other", cv.index(player), plates=game)
    skill = m.random("skill", cv.gaussian(25.0, sd=25.0 / 3.0), plates=player)
    m.random("result", cv.ordered_probit((skill[one] - skill[other]) / 6.0, np.array([-0.25, 0.25])))
    return m, {"one": [0, 0, 1, 2], "other": [1, 2, 2, 0], "result": [2, 1, 2, 0]}


def teams_of_two():
    """Six players in three games of two against two: MBML, chapter 3."""
    m = cv.Model("teams of two")
    player, game, member = m.plate("player", 6), m.plate("game"), m.plate("member", 2)
    winners = m.input("winners", cv.index(player), plates=(game, member))
    losers = m.input("losers", cv.index(player), plates=(game, member))
    skill = m.random("skill", cv.gaussian(100.0, sd=15.0), plates=player)
    plays, other_plays = (
        m.random(name, cv.gaussian(skill[who], sd=5.0)) for name, who in (("winning", winners), ("losing", losers))
    )
    m.constrain(cv.sum(plays, over=member) > cv.sum(other_plays, over=member))
    return m, {"winners": [[0, 1], [0, 2], [3, 4]], "losers": [[2, 3], [4, 5], [1, 5]]}


def three_in_a_race():
    """A free-for-all of three players: the order in which they end: MBML, chapter 3."""
    m = cv.Model("three in a race")
    skill = [
        m.random(name, cv.gaussian(mean, sd=sd))
        for name, mean, sd in (("jill", 120.0, 40.0), ("fred", 100.0, 5.0), ("steve", 140.0, 30.0))
    ]
    plays = [
        m.random(f"{name} plays", cv.gaussian(one, sd=5.0))
        for name, one in zip(("jill", "fred", "steve"), skill, strict=True)
    ]
    m.constrain(plays[0] > plays[1])
    m.constrain(plays[1] > plays[2])
    return m, {}


def inbox():
    """Will a message be answered, by whether it is addressed to me alone: MBML, chapter 4."""
    m = cv.Model("inbox")
    alone = m.input("alone", cv.real, plates=m.plate("message"))
    weight = m.random("weight", cv.gaussian(0.0, variance=1.0))
    threshold = m.random("threshold", cv.gaussian(0.0, variance=10.0))
    score = m.random("score", cv.gaussian(weight * alone, variance=10.0))
    m.let("replies", score > threshold)
    rng = np.random.default_rng(6)
    seen = (rng.random(50) < 0.5).astype(float)
    return m, {"alone": seen, "replies": rng.random(50) < np.where(seen > 0, 0.5, 0.2)}


def childhood_asthma():
    """Sensitisation of forty children at four ages, seen by a skin test that errs: MBML, chapter 6."""
    m = cv.Model("childhood asthma")
    child, age, before = m.plate("child"), m.plate("age", 4), m.plate("before", 2)
    yes, no = (m.input(name, cv.positive, plates=before) for name in ("yes", "no"))
    first = m.random("first", cv.beta(1.0, 1.0))
    stays = m.random("stays", cv.beta(1.0, 1.0), plates=before)
    positive = m.random("positive", cv.beta(yes, no))
    sensitised = m.chain(
        "sensitised",
        over=age,
        plates=child,
        first=cv.bernoulli(first),
        then=lambda previous: cv.bernoulli(stays[previous]),
    )
    m.random("test", cv.bernoulli(positive[sensitised]))
    rng = np.random.default_rng(7)
    state = np.zeros((40, 4), bool)
    for t in range(4):
        state[:, t] = rng.random(40) < (0.2 if t == 0 else np.where(state[:, t - 1], 0.9, 0.15))
    return m, {"yes": [1.0, 9.0], "no": [9.0, 1.0], "test": rng.random((40, 4)) < np.where(state, 0.85, 0.05)}


def crowd_sourcing():
    """Five workers of different care label thirty messages of three classes: MBML, chapter 7."""
    m = cv.Model("crowd sourcing")
    worker, item, kind, row = m.plate("worker", 5), m.plate("item", 30), m.plate("kind", 3), m.plate("row")
    who, what = m.input("who", cv.index(worker), plates=row), m.input("what", cv.index(item), plates=row)
    belief = m.input("belief", cv.vector(3), plates=kind)
    share = m.random("share", cv.dirichlet(np.ones(3)))
    confusion = m.random("confusion", cv.dirichlet(belief), plates=(worker, kind))
    true = m.random("true", cv.categorical(share), plates=item)
    m.random("label", cv.categorical(confusion[who][true[what]]))
    rng = np.random.default_rng(8)
    z, care = rng.choice(3, 30, p=[0.5, 0.3, 0.2]), np.array([0.9, 0.8, 0.8, 0.6, 0.4])
    who, what = np.repeat(np.arange(5), 20), np.concatenate([rng.permutation(30)[:20] for _ in range(5)])
    label = np.where(rng.random(100) < care[who], z[what], rng.integers(3, size=100))
    return m, {"who": who, "what": what, "belief": np.ones((3, 3)) + 2.0 * np.eye(3), "label": label}


def chess_through_time():
    """Four players over three years; skills drift: Infer.NET, chess analysis."""
    m = cv.Model("chess through time")
    player, year, game = m.plate("player", 4), m.plate("year", 3), m.plate("game")
    winner, loser = (m.input(name, cv.index(player), plates=game) for name in ("winner", "loser"))
    when = m.input("when", cv.index(year), plates=game)
    skill = m.chain(
        "skill",
        over=year,
        plates=player,
        first=cv.gaussian(1200.0, sd=800.0),
        then=lambda previous: cv.gaussian(previous, sd=26.0),
    )
    margin = m.random("margin", cv.gaussian(skill[winner][when] - skill[loser][when], sd=460.0))
    m.constrain(margin > 0)
    games = [[0, 1, 0], [1, 2, 0], [2, 3, 0], [0, 3, 1], [3, 1, 1], [1, 2, 1], [3, 0, 2], [3, 2, 2], [1, 3, 2]]
    winners, losers, years = np.array(games).T
    return m, {"winner": winners, "loser": losers, "when": years}


# Examples of RxInfer --------------------------------------------------------------------------------------------------


def coin():
    """The chance of heads from thirty throws: RxInfer, coin toss."""
    m = cv.Model("coin")
    chance = m.random("chance", cv.beta(4.0, 8.0))
    m.random("heads", cv.bernoulli(chance), plates=m.plate("throw"))
    return m, {"heads": np.random.default_rng(9).random(30) < 0.75}


def coin_of_two_kinds():
    """A coin that is of one of two kinds: RxInfer, universal mixtures."""
    m = cv.Model("coin of two kinds")
    first = m.random("first", cv.bernoulli(0.7))
    chance = m.random("chance", cv.switch(first, cv.beta(2.0, 7.0), cv.beta(7.0, 2.0)))
    m.random("heads", cv.bernoulli(chance), plates=m.plate("throw"))
    return m, {"heads": [True, True, False, True, False, True]}


def line():
    """Intercept, slope and noise of a line: RxInfer, Bayesian linear regression."""
    m = cv.Model("line")
    x = m.input("x", cv.real, plates=m.plate("n"))
    intercept = m.random("intercept", cv.gaussian(0.0, sd=10.0))
    slope = m.random("slope", cv.gaussian(0.0, sd=10.0))
    noise = m.random("noise", cv.half_normal(5.0))
    m.random("y", cv.gaussian(intercept + slope * x, sd=noise))
    x = np.linspace(0.0, 5.0, 15)
    return m, {"x": x, "y": 1.0 + 0.5 * x + np.random.default_rng(10).normal(0.0, 0.7, 15)}


def binomial_regression():
    """Successes of ten trials, by two features: RxInfer, binomial regression."""
    m = cv.Model("binomial regression")
    x = m.input("x", cv.vector(2), plates=m.plate("n"))
    w = m.random("w", cv.vector_gaussian(np.zeros(2), covariance=10.0 * np.eye(2)))
    m.random("y", cv.binomial(10, cv.logistic(w @ x)))
    rng = np.random.default_rng(11)
    x = np.column_stack([np.ones(25), rng.normal(size=25)])
    return m, {"x": x, "y": rng.binomial(10, 1.0 / (1.0 + np.exp(-(x @ [0.5, -1.2]))))}


def rotating_target():
    """A point that goes round, seen with noise: RxInfer, Kalman smoothing of a rotation."""
    m = cv.Model("rotating target")
    angle = np.pi / 10.0
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    state = m.chain(
        "state",
        over=m.plate("t"),
        first=cv.vector_gaussian(np.zeros(2), covariance=100.0 * np.eye(2)),
        then=lambda previous: cv.vector_gaussian(turn @ previous, covariance=0.1 * np.eye(2)),
    )
    m.random("y", cv.vector_gaussian(state, covariance=np.eye(2)))
    along = angle * np.arange(25)
    path = 5.0 * np.column_stack([np.cos(along), np.sin(along)])
    return m, {"y": path + np.random.default_rng(12).normal(size=(25, 2))}


def random_walk():
    """A random walk seen with noise, both precisions unknown: RxInfer, local level."""
    m = cv.Model("random walk")
    steps, noise = (m.random(name, cv.gamma(1.0, 1.0)) for name in ("steps", "noise"))
    state = m.chain(
        "state",
        over=m.plate("t"),
        first=cv.gaussian(0.0, variance=100.0),
        then=lambda previous: cv.gaussian(previous, precision=steps),
    )
    m.random("y", cv.gaussian(state, precision=noise))
    rng = np.random.default_rng(13)
    return m, {"y": np.cumsum(rng.normal(0.0, 0.6, 40)) + rng.normal(size=40)}


def autoregression():
    """An autoregression seen with noise; its coefficient and precision are unknown: RxInfer, autoregressive models."""
    m = cv.Model("autoregression")
    coefficient = m.random("coefficient", cv.gaussian(0.0, variance=1.0))
    precision = m.random("precision", cv.gamma(1.0, 1.0))
    state = m.chain(
        "state",
        over=m.plate("t"),
        first=cv.gaussian(0.0, variance=10.0),
        then=lambda previous: cv.gaussian(coefficient * previous, precision=precision),
    )
    m.random("y", cv.gaussian(state, variance=0.5))
    rng, x = np.random.default_rng(14), [0.0]
    for _ in range(49):
        x.append(0.8 * x[-1] + rng.normal())
    return m, {"y": x + rng.normal(0.0, np.sqrt(0.5), 50)}


def two_signals():
    """The sum of a random walk and of an autoregression, to be told apart: RxInfer, identification problem."""
    m = cv.Model("two signals")
    t = m.plate("t")
    walk = m.chain(
        "walk", over=t, first=cv.gaussian(0.0, variance=10.0), then=lambda previous: cv.gaussian(previous, variance=0.1)
    )
    wave = m.chain(
        "wave",
        over=t,
        first=cv.gaussian(0.0, variance=1.0),
        then=lambda previous: cv.gaussian(-0.7 * previous, variance=0.5),
    )
    m.random("y", cv.gaussian(walk + wave, variance=0.1))
    rng, wave = np.random.default_rng(15), [0.0]
    for _ in range(29):
        wave.append(-0.7 * wave[-1] + rng.normal(0.0, np.sqrt(0.5)))
    return m, {"y": np.cumsum(rng.normal(0.0, np.sqrt(0.1), 30)) + wave + rng.normal(0.0, np.sqrt(0.1), 30)}


def probit_states():
    """A random walk with a drift that is seen as booleans: RxInfer, probit model."""
    m = cv.Model("probit states")
    state = m.chain(
        "state",
        over=m.plate("t"),
        first=cv.gaussian(0.0, variance=100.0),
        then=lambda previous: cv.gaussian(previous + 0.1, variance=0.01),
    )
    m.random("y", cv.bernoulli(cv.probit(state)))
    path = -2.0 + 0.1 * np.arange(40)
    return m, {"y": path + np.random.default_rng(16).normal(size=40) > 0}


def poisson_tracker():
    """Counts whose log rate walks at random: a test of Infer.NET, with a longer series."""
    m = cv.Model("Poisson tracker")
    rate = m.chain(
        "log rate",
        over=m.plate("t"),
        first=cv.gaussian(0.0, variance=100.0),
        then=lambda previous: cv.gaussian(previous, precision=10.0),
    )
    m.random("y", cv.poisson(cv.exp(rate)))
    return m, {"y": [0, 1, 2, 1, 0, 3, 2, 4, 3, 6, 4, 2, 3, 1, 1, 0, 2, 1, 0, 0]}


def hierarchical_gaussian_filter():
    """A random walk whose log variance walks at random: RxInfer, hierarchical Gaussian filter."""
    m = cv.Model("hierarchical Gaussian filter")
    t = m.plate("t")
    z = m.chain(
        "z", over=t, first=cv.gaussian(0.0, variance=1.0), then=lambda previous: cv.gaussian(previous, variance=0.2)
    )
    x = m.chain(
        "x",
        over=t,
        first=cv.gaussian(0.0, variance=1.0),
        then=lambda previous: cv.gaussian(previous, variance=cv.exp(z)),
    )
    m.random("y", cv.gaussian(x, variance=0.1))
    rng = np.random.default_rng(17)
    z = np.cumsum(rng.normal(0.0, np.sqrt(0.2), 25))
    return m, {"y": np.cumsum(rng.normal(0.0, np.exp(0.5 * z))) + rng.normal(0.0, np.sqrt(0.1), 25)}


def vacuum_cleaner():
    """In which of three rooms it is, by the floor it senses: RxInfer, hidden Markov model."""
    m = cv.Model("vacuum cleaner")
    t, room = m.plate("t"), m.plate("room", 3)
    belief = m.input("belief", cv.vector(3), plates=room)
    move = m.random("move", cv.dirichlet(np.ones(3)), plates=room)
    sense = m.random("sense", cv.dirichlet(belief))
    state = m.chain(
        "state",
        over=t,
        first=cv.categorical(np.full(3, 1.0 / 3.0)),
        then=lambda previous: cv.categorical(move[previous]),
    )
    m.random("floor", cv.categorical(sense[state]))
    rng, path = np.random.default_rng(18), [0]
    for _ in range(59):
        path.append(rng.choice(3, p=[[0.9, 0.0, 0.1], [0.0, 0.9, 0.1], [0.05, 0.05, 0.9]][path[-1]]))
    floor = [rng.choice(3, p=[[0.9, 0.05, 0.05], [0.05, 0.9, 0.05], [0.05, 0.05, 0.9]][one]) for one in path]
    return m, {"belief": np.ones((3, 3)) + 9.0 * np.eye(3), "floor": floor}


def mixture_on_a_line():
    """Two classes of numbers, with priors that tell them apart: RxInfer, univariate mixture of Gaussians."""
    m = cv.Model("mixture on a line")
    kind = m.plate("kind", 2)
    centre = m.input("centre", cv.real, plates=kind)
    second = m.random("second", cv.beta(1.0, 1.0))
    mean = m.random("mean", cv.gaussian(centre, sd=2.0))
    precision = m.random("precision", cv.gamma(1.0, 1.0), plates=kind)
    z = m.random("z", cv.bernoulli(second), plates=m.plate("n"))
    m.random("x", cv.gaussian(mean[z], precision=precision[z]))
    rng = np.random.default_rng(19)
    return m, {"centre": [-2.0, 7.0], "x": np.concatenate([rng.normal(-2.0, 1.0, 20), rng.normal(7.0, 1.5, 40)])}


# Networks, and other staples ------------------------------------------------------------------------------------------


def wet_grass():
    """Did the sprinkler or the rain wet the grass: the network of Russell and Norvig, and of Infer.NET."""
    m = cv.Model("wet grass")
    p = m.input("p", cv.unit, plates=(m.plate("sprinkler off or on", 2), m.plate("dry or rain", 2)))
    cloudy = m.random("cloudy", cv.bernoulli(0.5))
    sprinkler = m.random("sprinkler", cv.switch(cloudy, cv.bernoulli(0.1), cv.bernoulli(0.5)))
    rain = m.random("rain", cv.switch(cloudy, cv.bernoulli(0.8), cv.bernoulli(0.2)))
    m.random("wet", cv.bernoulli(p[sprinkler][rain]))
    return m, {"p": [[0.0, 0.9], [0.9, 0.99]], "wet": True}


def burglary():
    """Burglary or earthquake, given that two neighbours call: Pearl's alarm."""
    m = cv.Model("burglary")
    p = m.input("p", cv.unit, plates=(m.plate("burglary or not", 2), m.plate("earthquake or not", 2)))
    burglary, earthquake = m.random("burglary", cv.bernoulli(0.001)), m.random("earthquake", cv.bernoulli(0.002))
    alarm = m.random("alarm", cv.bernoulli(p[burglary][earthquake]))
    m.random("john", cv.switch(alarm, cv.bernoulli(0.9), cv.bernoulli(0.05)))
    m.random("mary", cv.switch(alarm, cv.bernoulli(0.7), cv.bernoulli(0.01)))
    return m, {"p": [[0.001, 0.29], [0.94, 0.95]], "john": True, "mary": True}


def asia():
    """The chest clinic of Lauritzen and Spiegelhalter: a visit to Asia, short breath, and a clear picture."""
    m = cv.Model("Asia")
    p = m.input("p", cv.unit, plates=(m.plate("healthy or ill", 2), m.plate("no bronchitis or some", 2)))
    visit, smoker = m.random("visit", cv.bernoulli(0.01)), m.random("smoker", cv.bernoulli(0.5))
    tuberculosis = m.random("tuberculosis", cv.switch(visit, cv.bernoulli(0.05), cv.bernoulli(0.01)))
    cancer = m.random("cancer", cv.switch(smoker, cv.bernoulli(0.1), cv.bernoulli(0.01)))
    bronchitis = m.random("bronchitis", cv.switch(smoker, cv.bernoulli(0.6), cv.bernoulli(0.3)))
    ill = m.let("ill", tuberculosis | cancer)
    m.random("shadow", cv.switch(ill, cv.bernoulli(0.98), cv.bernoulli(0.05)))
    m.random("short of breath", cv.bernoulli(p[ill][bronchitis]))
    return m, {"p": [[0.1, 0.8], [0.7, 0.9]], "visit": True, "short of breath": True, "shadow": False}


def student():
    """Intelligence and difficulty by a grade, a test and a letter: the network of Koller and Friedman."""
    m = cv.Model("student")
    grades = m.input("grades", cv.simplex(3), plates=(m.plate("easy or hard", 2), m.plate("plain or bright", 2)))
    praise = m.input("praise", cv.unit, plates=m.plate("grade of the course", 3))
    hard, bright = m.random("hard", cv.bernoulli(0.4)), m.random("bright", cv.bernoulli(0.3))
    grade = m.random("grade", cv.categorical(grades[hard][bright]))
    m.random("test", cv.switch(bright, cv.bernoulli(0.8), cv.bernoulli(0.05)))
    m.random("letter", cv.bernoulli(praise[grade]))
    table = [[[0.3, 0.4, 0.3], [0.9, 0.08, 0.02]], [[0.05, 0.25, 0.7], [0.5, 0.3, 0.2]]]
    return m, {"grades": table, "praise": [0.9, 0.6, 0.01], "letter": False, "test": True}


def monty_hall():
    """Three doors, a prize behind one; the host opens another one."""
    m = cv.Model("Monty Hall")
    opens = m.input("opens", cv.simplex(3), plates=(m.plate("prize behind", 3), m.plate("chosen door", 3)))
    prize, chosen = m.random("prize", cv.discrete_uniform(3)), m.random("chosen", cv.discrete_uniform(3))
    m.random("opened", cv.categorical(opens[prize][chosen]))
    free = np.array([[np.where(np.isin(np.arange(3), (i, j)), 0.0, 1.0) for j in range(3)] for i in range(3)])
    return m, {"opens": free / free.sum(axis=2, keepdims=True), "chosen": 0, "opened": 2}


def two_dice():
    """Two dice that came to eight: which is the larger one?"""
    m = cv.Model("two dice")
    first, second = m.random("first", cv.discrete_uniform(6)), m.random("second", cv.discrete_uniform(6))
    m.let("total", first + second)
    m.let("larger", first > second)
    return m, {"total": 6}


def hamming_code():
    """Four bits and three parity bits, received with one bit in ten flipped."""
    m = cv.Model("Hamming code")
    flipped = m.input("flipped", cv.unit, plates=m.plate("sent", 2))
    a, b, c, d = (m.random(name, cv.bernoulli(0.5)) for name in "abcd")
    code = {"a": a, "b": b, "c": c, "d": d, "abd": (a != b) != d, "acd": (a != c) != d, "bcd": (b != c) != d}
    for name, bit in code.items():
        sent = m.let(f"sent {name}", bit) if len(name) > 1 else bit
        m.random(f"received {name}", cv.bernoulli(flipped[sent]))
    received = dict(zip(code, [True, False, True, True, True, True, False], strict=True))
    return m, {"flipped": [0.1, 0.9], **{f"received {name}": bit for name, bit in received.items()}}


def noisy_image():
    """Nine pixels, each like its neighbours, seen with noise: an Ising model."""
    m = cv.Model("noisy image")
    alike, shown = (m.input(name, cv.unit, plates=m.plate(f"of {name}", 2)) for name in ("alike", "shown"))
    pixel = {(i, j): m.random(f"pixel {i}{j}", cv.bernoulli(0.5)) for i in range(3) for j in range(3)}
    data, image = {"alike": [0.2, 0.8], "shown": [0.3, 0.7]}, np.array([[1, 1, 0], [1, 0, 0], [0, 1, 0]], bool)
    for (i, j), one in pixel.items():
        m.random(f"seen {i}{j}", cv.bernoulli(shown[one]))
        data[f"seen {i}{j}"] = image[i, j]
        for near in {(i + 1, j), (i, j + 1)} & set(pixel):
            link = f"{i}{j} like {near[0]}{near[1]}"
            m.random(link, cv.bernoulli(alike[m.let(f"{link} or not", one == pixel[near])]))
            data[link] = True
    return m, data


def diagnosis():
    """Three diseases, four findings, each caused by some of them or by none: a noisy-or network."""
    m = cv.Model("diagnosis")
    disease = {name: m.random(name, cv.bernoulli(p)) for name, p in (("flu", 0.1), ("cold", 0.2), ("allergy", 0.15))}
    causes = {
        "fever": {"flu": 0.8, "cold": 0.2},
        "cough": {"flu": 0.6, "cold": 0.5},
        "sneezing": {"cold": 0.7, "allergy": 0.8},
        "rash": {"allergy": 0.3},
    }
    for finding, by in causes.items():
        found = m.random(f"{finding} by itself", cv.bernoulli(0.02))
        for name, p in by.items():
            found = found | (disease[name] & m.random(f"{finding} by {name}", cv.bernoulli(p)))
        m.let(finding, found)
    return m, {"fever": False, "cough": True, "sneezing": True, "rash": False}


def handedness():
    """Are students and lecturers alike in being right-handed: a page of Infer.NET's authors."""
    m = cv.Model("handedness")
    alike = m.random("alike", cv.bernoulli(0.5))
    p, q = (m.random(name, cv.beta(0.72, 0.08)) for name in ("of students", "of lecturers"))
    m.random("student", cv.bernoulli(p), plates=m.plate("students"))
    m.random("lecturer", cv.switch(alike, cv.bernoulli(p), cv.bernoulli(q)), plates=m.plate("lecturers"))
    return m, {"student": [True] * 9 + [False], "lecturer": [True] * 7 + [False] * 3}


def ball_counting():
    """How many balls are in the urn, by ten draws with colours that are seen with noise: BLOG, and Infer.NET."""
    m = cv.Model("ball counting")
    number, ball, draw = m.plate("number", 8), m.plate("ball", 8), m.plate("draw")
    pick = m.input("pick", cv.simplex(8), plates=number)
    rate = m.input("rate", cv.unit, plates=m.plate("colour", 2))
    count = m.random("count", cv.discrete_uniform(8))
    blue = m.random("blue", cv.bernoulli(0.5), plates=ball)
    picked = m.random("picked", cv.categorical(pick[count]), plates=draw)
    m.random("seen", cv.bernoulli(rate[blue[picked]]))
    picks = np.tril(np.ones((8, 8)))
    return m, {"pick": picks / picks.sum(axis=1, keepdims=True), "rate": [0.2, 0.8], "seen": [True] * 10}


def spam_filter():
    """Naive Bayes with learned chances of words, and three messages of an unknown kind."""
    m = cv.Model("spam filter")
    message, other = m.plate("message"), m.plate("new message")
    spam_share = m.random("spam share", cv.beta(1.0, 1.0))
    chance = m.random("chance", cv.beta(1.0, 1.0), plates=(m.plate("kind", 2), m.plate("word", 6)))
    spam = m.random("spam", cv.bernoulli(spam_share), plates=message)
    m.random("has", cv.bernoulli(chance[spam]))
    new = m.random("new spam", cv.bernoulli(spam_share), plates=other)
    m.random("new has", cv.bernoulli(chance[new]))
    rng = np.random.default_rng(20)
    kind = rng.random(20) < 0.4
    rates = np.array([[0.1, 0.2, 0.5, 0.4, 0.1, 0.3], [0.6, 0.5, 0.4, 0.1, 0.1, 0.7]])
    new = np.array([[1, 1, 0, 0, 0, 1], [0, 0, 0, 0, 0, 0], [1, 0, 1, 1, 0, 0]], bool)
    return m, {"spam": kind, "has": rng.random((20, 6)) < rates[kind.astype(int)], "new has": new}


def clutter():
    """A signal among clutter of a wide Gaussian: Minka's thesis."""
    m = cv.Model("clutter")
    mean = m.random("mean", cv.gaussian(0.0, variance=100.0))
    clean = m.random("clean", cv.bernoulli(0.5), plates=m.plate("n"))
    m.random("x", cv.switch(clean, cv.gaussian(mean, variance=1.0), cv.gaussian(0.0, variance=10.0)))
    rng = np.random.default_rng(21)
    return m, {"x": np.where(rng.random(20) < 0.5, rng.normal(2.0, 1.0, 20), rng.normal(0.0, np.sqrt(10.0), 20))}


def two_thermometers():
    """The temperature by two instruments of unknown precision."""
    m = cv.Model("two thermometers")
    temperature = m.random("temperature", cv.gaussian(20.0, sd=10.0))
    instrument = m.plate("instrument", 2)
    precision = m.random("precision", cv.gamma(2.0, 1.0), plates=instrument)
    m.random("reading", cv.gaussian(temperature, precision=precision), plates=(m.plate("n"), instrument))
    return m, {"reading": [[21.3, 22.6], [21.1, 20.4], [21.6, 23.1], [21.2, 21.9]]}


def tanks():
    """The largest serial number, given ten of them: the German tank problem."""
    m = cv.Model("tanks")
    largest = m.random("largest", cv.gaussian(200.0, sd=100.0))
    m.random("serial", cv.uniform(0.0, largest), plates=m.plate("n"))
    return m, {"serial": [47.0, 12.0, 110.0, 83.0, 62.0, 148.0, 5.0, 91.0, 133.0, 29.0]}


def rainfall():
    """Shape and rate of a Gamma distribution, from twenty showers."""
    m = cv.Model("rainfall")
    shape, rate = m.random("shape", cv.gamma(2.0, 1.0)), m.random("rate", cv.gamma(2.0, 1.0))
    m.random("rain", cv.gamma(shape, rate), plates=m.plate("shower"))
    return m, {"rain": np.random.default_rng(22).gamma(2.5, 1.0 / 0.8, 20)}


def old_faithful():
    """Two kinds of eruptions by their length in minutes: the first eighty of Old Faithful."""
    m = cv.Model("Old Faithful")
    kind = m.plate("kind", 2)
    share = m.random("share", cv.dirichlet(np.ones(2)))
    mean = m.random("mean", cv.gaussian(3.0, sd=3.0), plates=kind)
    spread = m.random("spread", cv.half_normal(1.0), plates=kind)
    z = m.random("z", cv.categorical(share), plates=m.plate("n"))
    m.random("minutes", cv.gaussian(mean[z], sd=spread[z]))
    return m, {"minutes": OLD_FAITHFUL}


# fmt: off
OLD_FAITHFUL = [
    3.6, 1.8, 3.333, 2.283, 4.533, 2.883, 4.7, 3.6, 1.95, 4.35, 1.833, 3.917, 4.2, 1.75, 4.7, 2.167,
    1.75, 4.8, 1.6, 4.25, 1.8, 1.75, 3.45, 3.067, 4.533, 3.6, 1.967, 4.083, 3.85, 4.433, 4.3, 4.467,
    3.367, 4.033, 3.833, 2.017, 1.867, 4.833, 1.833, 4.783, 4.35, 1.883, 4.567, 1.75, 4.533, 3.317, 3.833, 2.1,
    4.633, 2.0, 4.8, 4.716, 1.833, 4.833, 1.733, 4.883, 3.717, 1.667, 4.567, 4.317, 2.233, 4.5, 1.75, 4.8,
    1.817, 4.4, 4.167, 4.7, 2.067, 4.7, 4.033, 1.967, 4.5, 4.0, 1.983, 5.067, 2.017, 4.567, 3.883, 3.6,
]
# fmt: on


MODELS = [
    two_coins,
    truncated_gaussian,
    learning_a_gaussian,
    bayes_point_machine,
    clinical_trial,
    mixture_of_gaussians,
    cyclist,
    cyclist_mixture,
    five_players,
    difficulty_and_ability,
    gaussian_process_classifier,
    multinomial_regression,
    recommender,
    murder_mystery,
    three_questions,
    assessing_skills,
    jill_and_fred,
    games_with_draws,
    teams_of_two,
    three_in_a_race,
    inbox,
    childhood_asthma,
    crowd_sourcing,
    chess_through_time,
    coin,
    coin_of_two_kinds,
    line,
    binomial_regression,
    rotating_target,
    random_walk,
    autoregression,
    two_signals,
    probit_states,
    poisson_tracker,
    hierarchical_gaussian_filter,
    vacuum_cleaner,
    mixture_on_a_line,
    wet_grass,
    burglary,
    asia,
    student,
    monty_hall,
    two_dice,
    hamming_code,
    noisy_image,
    diagnosis,
    handedness,
    ball_counting,
    spam_filter,
    clutter,
    two_thermometers,
    tanks,
    rainfall,
    old_faithful,
]
