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
]
