"""References of the models of infernet.py, from closed forms, enumeration, grids, importance and Gibbs sampling.

    python benchmarks/first_hour/by_grid.py [--only NAME ...]

Each function here has the name of a model, takes its data, and gives the entry of infernet.json. NumPy and SciPy only:
nothing of the engine is used but the data of the models.
"""

import argparse
import itertools
import json
from pathlib import Path

import infernet
import numpy as np
import truth
from scipy import special, stats
from truth import Grid, known, weighted

FILE = Path(__file__).resolve().parent / "infernet.json"

# What the language refused as it was first written; the model beside it is the nearest form that runs.
REFUSED = {
    "assessing_skills": "guess on a plate of questions, guess[0] in a loop: ModelError, 'guess' is indexed by 0",
    "childhood_asthma": "plate age declared before child: DataError, 'test' gives plate 'age' 40 elements",
    "spam_filter": "plate word declared before message: DataError, 'has' gives plate 'word' 20 elements",
    "hamming_code": "flipped[(a != b) != d]: ModelError, indexed by the unnamed expression",
    "noisy_image": "alike[one == other]: ModelError, indexed by the unnamed expression",
    "tanks": "largest ~ gamma(...): ModelError, argument `high` of uniform must be real; found 'largest', positive",
}


def enumerated(names, log_probability):
    """Booleans by all their states: `log_probability(states by name)` of the data and the states."""
    states = np.array(list(itertools.product([False, True], repeat=len(names))))
    by_name = dict(zip(names, states.T, strict=True))
    with np.errstate(divide="ignore"):
        log_weights = log_probability(by_name)
    return weighted("exact enumeration", log_weights, {name: by_name[name].astype(float) for name in names})


def log_bernoulli(value, probability):
    """log P(value) of a boolean."""
    return np.log(np.where(value, probability, 1.0 - np.asarray(probability)))


def gamma_of_logs(logs, shape, rate):
    """The log density of the logarithm of a Gamma variable."""
    return stats.gamma.logpdf(np.exp(logs), shape, scale=1.0 / rate) + logs


def logit_beta(logits, a, b):
    """The log density of the log odds of a Beta variable."""
    return a * special.log_expit(logits) + b * special.log_expit(-logits) - special.betaln(a, b)


def given_precision(precision, x, mean, variance):
    """Of Gaussian data with a known precision and a Gaussian prior of their mean: evidence, mean, variance."""
    n, total = len(x), np.sum(x)
    post = 1.0 / (1.0 / variance + n * precision)
    found = post * (mean / variance + precision * total)
    log_likelihood = 0.5 * n * np.log(precision) - n * truth.LOG_ROOT_2_PI - 0.5 * precision * np.sum(np.square(x))
    log_evidence = log_likelihood + 0.5 * np.log(post / variance) + 0.5 * (found**2 / post - mean**2 / variance)
    return log_evidence, found, post


# Tutorials of Infer.NET -----------------------------------------------------------------------------------------------


def two_coins(data):
    return enumerated(["first", "second"], lambda s: np.log(0.25 * ~(s["first"] & s["second"])))


def truncated_gaussian(data):
    log_mass, mean, variance = truth.truncated(0.0, 1.0, low=0.5)
    return weighted("closed form", [log_mass], {"x": ([mean], [variance])})


def learning_a_gaussian(data):
    grid = Grid.of((-1.0, 1.2, 4001))
    log_evidence, mean, variance = given_precision(np.exp(grid.points[0]), data["x"], 0.0, 100.0)
    log_density = log_evidence + gamma_of_logs(grid.points[0], 1.0, 1.0)
    return grid.entry(log_density, {"mean": (mean, variance), "precision": known(np.exp(grid.points[0]))})


def bayes_point_machine(data):
    sign = np.where(data["buys"], 1.0, -1.0)

    def log_density(w):
        return special.log_ndtr(sign * (w @ data["x"].T) / np.sqrt(0.1)).sum(axis=1) + stats.norm.logpdf(w).sum(axis=1)

    return truth.importance(log_density, [0.06, 0.0, -1.4], lambda w: {"w": known(w)}, count=2**20, rounds=8)


def clinical_trial(data):
    """Evidence of each case by the Beta function; of chances that no data reach the prior stays."""
    counts = {name: (np.sum(data[name]), np.sum(~np.array(data[name]))) for name in ("control", "treated")}
    counts["all"] = np.sum(list(counts.values()), axis=0)
    log_evidence = {name: special.betaln(1 + yes, 1 + no) for name, (yes, no) in counts.items()}
    cases = np.log(0.5) + np.array([log_evidence["all"], log_evidence["control"] + log_evidence["treated"]])
    values = {"effective": [0.0, 1.0]}
    for name, case in (("all", 0), ("control", 1), ("treated", 1)):
        seen = np.where(np.arange(2)[:, None] == case, counts[name], 0)
        chance = stats.beta(1.0 + seen[:, 0], 1.0 + seen[:, 1])
        values[f"if {name}"] = chance.mean(), chance.var()
    return weighted("closed form", cases, values)


def mixture_of_gaussians(data):
    """Gibbs sampling; classes are told apart by the first coordinate of their means in each draw."""
    x = data["x"]

    def start(rng, chains):
        z = np.broadcast_to(x[:, 0] > 4.5, (chains, len(x))).astype(int)
        return {"z": z, "precision": np.broadcast_to(np.eye(2), (chains, 2, 2, 2))}

    def sweep(rng, s):
        member = truth.one_hot(s["z"], 2)
        count = member.sum(axis=1)
        weights = truth.draw_dirichlet(rng, 1.0 + count)
        total = np.einsum("cnk,nd->ckd", member, x)
        shift = np.einsum("ckde,cke->ckd", s["precision"], total)
        mean = truth.draw_gaussian(rng, count[..., None, None] * s["precision"] + 0.01 * np.eye(2), shift)
        off = x[None, :, None] - mean[:, None]
        rate = 4.0 * np.eye(2) + np.einsum("cnk,cnkd,cnke->ckde", member, off, off)
        precision = draw_wishart(rng, 4.0 + count, np.linalg.inv(rate))
        square = np.einsum("cnkd,ckde,cnke->cnk", off, precision, off)
        log_p = np.log(weights)[:, None] + 0.5 * np.log(np.linalg.det(precision))[:, None] - 0.5 * square
        return {"z": truth.draw_category(rng, log_p), "weights": weights, "mean": mean, "precision": precision}

    def read(s):
        order = np.argsort(s["mean"][..., 0], axis=1)
        found = {name: np.take_along_axis(s["weights"], order, 1) for name in ("weights",)}
        found["mean"] = np.take_along_axis(s["mean"], order[..., None], 1)
        found["precision"] = np.take_along_axis(s["precision"], order[..., None, None], 1)
        return found | {"z": np.take_along_axis(truth.one_hot(s["z"], 2), order[:, None], 2)}

    def parts(theta):
        """Shares, means, lower triangular roots of the precisions with the logarithms of their diagonals."""
        share = np.stack([theta[:, 0], -theta[:, 0]], axis=1)
        root = np.zeros((len(theta), 2, 2, 2))
        root[..., 0, 0], root[..., 1, 1] = np.exp(theta[:, 5:7]), np.exp(theta[:, 7:9])
        root[..., 1, 0] = theta[:, 9:11]
        return share, theta[:, 1:5].reshape(-1, 2, 2), root

    def log_density(theta):
        share, mean, root = parts(theta)
        scaled = np.einsum("pkde,pnkd->pnke", root, x[None, :, None] - mean[:, None])
        logs = theta[:, 5:7] + theta[:, 7:9]  # half the log determinants
        each = special.log_expit(share)[:, None] + logs[:, None] - 0.5 * (scaled**2).sum(axis=3) - np.log(2.0 * np.pi)
        log_p = special.logsumexp(each, axis=2).sum(axis=1) + special.log_expit(share).sum(axis=1)
        log_p = log_p + stats.norm.logpdf(mean, 0.0, 10.0).sum(axis=(1, 2))
        trace = 4.0 * (root**2).sum(axis=(2, 3))
        wishart = logs - 0.5 * trace + 4.0 * np.log(4.0) - 4.0 * np.log(2.0) - special.multigammaln(2.0, 2)
        jacobian = 2.0 * np.log(2.0) + 3.0 * theta[:, 5:7] + 2.0 * theta[:, 7:9]
        return log_p + (wishart + jacobian).sum(axis=1)

    def values(theta):
        share, mean, root = parts(theta)
        precision = root @ np.swapaxes(root, -1, -2)
        return {"weights": known(special.expit(share)), "mean": known(mean), "precision": known(precision)}

    start_at = [0.4, 2.0, 3.0, 7.0, 5.0, -0.5, -0.5, -0.2, -0.5, 0.0, 0.0]
    integrated = truth.importance(log_density, start_at, values)
    found = truth.agreed(truth.gibbs(start, sweep, read, {"z"}, chains=100, draws=4000), integrated, orders=2)
    return found | {"permuted": {"weights": 0, "mean": 0, "precision": 0, "z": 1}}


def draw_wishart(rng, dof, scale):
    """Wishart draws of two dimensions by the Bartlett decomposition; E = dof * scale."""
    factor = np.zeros(scale.shape)
    factor[..., 0, 0] = np.sqrt(rng.chisquare(dof))
    factor[..., 1, 1] = np.sqrt(rng.chisquare(dof - 1.0))
    factor[..., 1, 0] = rng.normal(size=dof.shape)
    root = np.linalg.cholesky(scale) @ factor
    return root @ np.swapaxes(root, -1, -2)


def cyclist(data):
    grid = Grid.of((-9.0, 4.0, 8001))
    precision = np.exp(grid.points[0])
    log_evidence, mean, variance = given_precision(precision, data["time"], 15.0, 100.0)
    values = {"average": (mean, variance), "noise": known(precision), "tomorrow": (mean, variance + 1.0 / precision)}
    return grid.entry(log_evidence + gamma_of_logs(grid.points[0], 2.0, 2.0), values)


def cyclist_mixture(data):
    """All 2^12 divisions of the days; of each kind the precision on a grid, its mean in closed form."""
    time, logs = np.array(data["time"]), np.linspace(-10.0, 5.0, 601)
    states = np.array(list(itertools.product([0, 1], repeat=len(time))))
    prior, precision = gamma_of_logs(logs, 2.0, 2.0) + np.log(logs[1] - logs[0]), np.exp(logs)
    log_weights = special.betaln(1.0 + (states == 0).sum(1), 1.0 + (states == 1).sum(1))
    parts = []
    for kind, usual in enumerate(data["usual"]):
        for row in states == kind:
            log_evidence, mean, variance = given_precision(precision, time[row], usual, 100.0)
            found = weighted(
                "", prior + log_evidence, {"average": (mean, variance * np.ones(601)), "noise": known(precision)}
            )
            parts.append(
                [
                    found["log_evidence"],
                    *(found["parameters"][n][key] for n in ("average", "noise") for key in ("mean", "sd")),
                ]
            )
    parts = np.array(parts).reshape(2, len(states), 5).transpose(1, 0, 2)
    values = {"average": (parts[..., 1], parts[..., 2] ** 2), "noise": (parts[..., 3], parts[..., 4] ** 2)}
    values["z"] = truth.one_hot(states, 2)
    share = stats.beta(1.0 + (states == 0).sum(1), 1.0 + (states == 1).sum(1))
    mean, variance = share.mean(), share.var()
    values["mixing"] = np.stack([mean, 1.0 - mean], 1), np.stack([variance, variance], 1)
    return weighted(
        "exact enumeration of the days, quadrature of the precisions", log_weights + parts[..., 0].sum(1), values
    )


def five_players(data):
    def parts(skill):
        return truth.ordered(skill[:, data["winner"]], 1.0, skill[:, data["loser"]], 1.0)

    def log_density(skill):
        return parts(skill)[0].sum(axis=1) + stats.norm.logpdf(skill, 6.0, 3.0).sum(axis=1)

    def values(skill):
        _, winning, losing = parts(skill)
        return {"skill": known(skill), "winning": winning, "losing": losing}

    return truth.importance(log_density, [9.5, 5.0, 2.7, 6.8, 6.0], values)


def difficulty_and_ability(data):
    """Gibbs sampling: the key with knowing summed out, then what is known, the margins, abilities and difficulties."""
    answer, (students, questions) = data["answer"], np.shape(data["answer"])
    matches = truth.one_hot(answer, 4)

    def start(rng, chains):
        return {"ability": np.zeros((chains, students)), "difficulty": np.zeros((chains, questions))}

    def sweep(rng, s):
        mean = s["ability"][:, :, None] - s["difficulty"][:, None]
        knows = special.ndtr(mean)[..., None]
        key = truth.draw_category(rng, np.log(knows * matches + (1.0 - knows) / 4.0).sum(axis=1))
        likely = knows[..., 0] / (knows[..., 0] + (1.0 - knows[..., 0]) / 4.0)
        can = (rng.random(mean.shape) < likely) & (answer == key[:, None])
        margin = truth.draw_truncated(rng, mean, 1.0, can)
        noise = rng.normal(size=(len(key), students))
        ability = (margin + s["difficulty"][:, None]).sum(axis=2) / (1 + questions) + noise / np.sqrt(1 + questions)
        noise = rng.normal(size=(len(key), questions))
        difficulty = (ability[:, :, None] - margin).sum(axis=1) / (1 + students) + noise / np.sqrt(1 + students)
        return {"ability": ability, "difficulty": difficulty, "key": key, "knows it": can}

    def read(s):
        return s | {"key": truth.one_hot(s["key"], 4)}

    def log_density(theta):
        knows = special.ndtr(theta[:, :students, None] - theta[:, None, students:])[..., None]
        each = np.log(knows * matches + (1.0 - knows) / 4.0).sum(axis=1) + np.log(0.25)
        return special.logsumexp(each, axis=2).sum(axis=1) + stats.norm.logpdf(theta).sum(axis=1)

    def values(theta):
        return {"ability": known(theta[:, :students]), "difficulty": known(theta[:, students:])}

    integrated = truth.importance(log_density, np.zeros(18), values, count=2**16)
    return truth.agreed(truth.gibbs(start, sweep, read, {"key", "knows it"}, chains=100, draws=5000), integrated)


def gaussian_process_classifier(data):
    x, sign = np.array(data["x"]), np.where(data["y"], 1.0, -1.0)
    kernel = np.exp(-0.5 * ((x[:, None] - x) ** 2).sum(-1))
    prior = stats.multivariate_normal(np.zeros(6), kernel)

    def log_density(f):
        return special.log_ndtr(sign * f / np.sqrt(0.1)).sum(axis=1) + prior.logpdf(f)

    def values(f):
        low, high = np.where(sign > 0, 0.0, -np.inf), np.where(sign > 0, np.inf, 0.0)
        return {"f": known(f), "score": truth.truncated(f, 0.1, low, high)[1:]}

    return truth.importance(log_density, 0.5 * sign, values)


def multinomial_regression(data):
    x, y = data["x"], data["y"]

    def log_density(theta):
        score = np.einsum("pkd,nd->pnk", theta[:, :6].reshape(-1, 3, 2), x) + theta[:, None, 6:]
        log_p = score - special.logsumexp(score, axis=2, keepdims=True)
        return log_p[:, np.arange(len(y)), y].sum(axis=1) + stats.norm.logpdf(theta).sum(axis=1)

    def values(theta):
        return {"w": known(theta[:, :6].reshape(-1, 3, 2)), "bias": known(theta[:, 6:])}

    return truth.importance(log_density, np.zeros(9), values, count=2**15)


def recommender(data):
    """Gibbs sampling: tastes, styles and biases are Gaussian given each other."""
    who, what, stars = data["who"], data["what"], data["stars"]
    of_user, of_film = truth.one_hot(who, 10), truth.one_hot(what, 6)

    def start(rng, chains):
        style = np.broadcast_to(np.vstack([np.eye(2), np.zeros((4, 2))]), (chains, 6, 2)).copy()
        style[:, 2:] = rng.normal(size=(chains, 4, 2))
        return {"style": style, "bias": np.zeros((chains, 6))}

    def draw(rng, rows, features, residual):
        precision = np.eye(features.shape[-1]) + np.einsum("nr,cnd,cne->crde", rows, features, features) / 0.5
        return truth.draw_gaussian(rng, precision, np.einsum("nr,cnd,cn->crd", rows, features, residual) / 0.5)

    def sweep(rng, s):
        taste = draw(rng, of_user, s["style"][:, what], stars - s["bias"][:, what])
        style = s["style"].copy()
        features = np.concatenate([taste[:, who], np.ones((len(taste), len(who), 1))], axis=2)
        style_and_bias = draw(rng, of_film, features, np.broadcast_to(stars, features.shape[:2]))
        style[:, 2:] = style_and_bias[:, 2:, :2]
        of_fixed = stars - np.sum(taste[:, who] * style[:, what], axis=2)
        bias = draw(rng, of_film, np.ones((len(taste), len(who), 1)), of_fixed)[..., 0]
        bias[:, 2:] = style_and_bias[:, 2:, 2]
        return {"taste": taste, "style": style, "bias": bias}

    def log_density(theta):
        """Styles of four films and all biases; given them the stars of a user are jointly Gaussian."""
        style = np.concatenate([np.broadcast_to(np.eye(2), (len(theta), 2, 2)), theta[:, :8].reshape(-1, 4, 2)], axis=1)
        log_p = stats.norm.logpdf(theta).sum(axis=1)
        for user in range(10):
            seen = what[who == user]
            off = stars[who == user] - theta[:, 8:][:, seen]
            covariance = style[:, seen] @ np.swapaxes(style[:, seen], 1, 2) + 0.5 * np.eye(len(seen))
            solved = np.linalg.solve(covariance, off[..., None])[..., 0]
            log_p = log_p - 0.5 * (np.sum(off * solved, axis=1) + np.linalg.slogdet(covariance)[1])
        return log_p - len(stars) * truth.LOG_ROOT_2_PI

    integrated = truth.importance(log_density, np.zeros(14), lambda theta: {"bias": known(theta[:, 8:])}, count=2**16)
    return truth.agreed(truth.gibbs(start, sweep, lambda s: s, chains=100, draws=5000), integrated)


# Model-Based Machine Learning -----------------------------------------------------------------------------------------


def murder_mystery(data):
    def log_probability(s):
        auburn = s["auburn"]
        return np.log(np.where(auburn, 0.7 * 0.2 * 0.05, 0.3 * 0.9 * 0.5))

    return enumerated(["auburn"], log_probability)


def three_questions(data):
    def log_probability(s):
        ables = s["csharp"], s["sql"], s["csharp"] & s["sql"]
        chances = (np.where(able, 0.9, 0.2) for able in ables)
        return np.log(0.25) + sum(log_bernoulli(data[f"correct {i}"], chance) for i, chance in enumerate(chances))

    return enumerated(["csharp", "sql"], log_probability)


def assessing_skills(data):
    """Gibbs sampling: the two skills of each person jointly, then the chances of a guess."""
    correct = np.stack([data[f"correct {i}"] for i in range(6)], axis=1)
    states = np.array([[False, False], [False, True], [True, False], [True, True]])
    both = states.all(axis=1)
    able = np.stack([states[:, 0], states[:, 1], both, states[:, 0], states[:, 1], both], axis=1)

    def start(rng, chains):
        return {"guess": np.full((chains, 6), 0.25)}

    def sweep(rng, s):
        chance = np.where(able, 0.9, s["guess"][:, None])[:, None]
        state = truth.draw_category(rng, log_bernoulli(correct[:, None], chance).sum(axis=-1))
        guessed = ~able[state]
        yes, no = (guessed & correct).sum(axis=1), (guessed & ~correct).sum(axis=1)
        return {"guess": rng.beta(2.5 + yes, 7.5 + no), "state": state}

    def read(s):
        skills = {"csharp": states[s["state"], 0], "sql": states[s["state"], 1]}
        return skills | {f"guess {i}": s["guess"][:, i] for i in range(6)}

    def log_density(theta):
        chance = np.where(able, 0.9, special.expit(theta)[:, None])[:, None]
        each = special.logsumexp(log_bernoulli(correct[:, None], chance).sum(axis=-1) + np.log(0.25), axis=2)
        return each.sum(axis=1) + logit_beta(theta, 2.5, 7.5).sum(axis=1)

    def values(theta):
        return {f"guess {i}": known(special.expit(theta[:, i])) for i in range(6)}

    integrated = truth.importance(log_density, np.full(6, -1.0), values, count=2**15)
    return truth.agreed(truth.gibbs(start, sweep, read, {"csharp", "sql"}), integrated)


def of_prior(mean, variance, noise, plays):
    """The skill behind a performance whose mean and variance are given."""
    share = variance / (variance + noise)
    return [mean + share * (plays[0] - mean)], [variance * (1.0 - share) + share**2 * plays[1]]


def jill_and_fred(data):
    log_mass, fred, jill = truth.ordered(100.0, 50.0, 120.0, 1625.0)
    values = {"jill plays": ([jill[0]], [jill[1]]), "fred plays": ([fred[0]], [fred[1]])}
    values["jill"], values["fred"] = of_prior(120.0, 1600.0, 25.0, jill), of_prior(100.0, 25.0, 25.0, fred)
    return weighted("closed form", [log_mass], values)


def games_with_draws(data):
    grid = Grid.of(*[(-45.0, 95.0, 141)] * 3)
    skill = np.stack(grid.points, axis=1)
    score = (skill[:, data["one"]] - skill[:, data["other"]]) / 6.0
    edges = np.array([-np.inf, -0.25, 0.25, np.inf])
    result = np.array(data["result"])
    log_mass = truth.truncated(score, 1.0, edges[result], edges[result + 1])[0]
    return grid.entry(log_mass.sum(1) + stats.norm.logpdf(skill, 25.0, 25.0 / 3.0).sum(1), {"skill": known(skill)})


def teams_of_two(data):
    winners, losers = np.array(data["winners"]), np.array(data["losers"])

    def parts(skill):
        ahead = skill[:, winners].sum(axis=2) - skill[:, losers].sum(axis=2)
        return ahead, truth.truncated(ahead, 100.0, low=0.0)

    def log_density(skill):
        return parts(skill)[1][0].sum(axis=1) + stats.norm.logpdf(skill, 100.0, 15.0).sum(axis=1)

    def values(skill):
        ahead, (_, margin, spread) = parts(skill)
        more, variance = ((margin - ahead) / 4.0)[..., None], (25.0 * 0.75 + spread / 16.0)[..., None]
        variance = np.broadcast_to(variance, (*variance.shape[:2], 2))
        found = {"winning": (skill[:, winners] + more, variance), "losing": (skill[:, losers] - more, variance)}
        return found | {"skill": known(skill)}

    return truth.importance(log_density, np.full(6, 100.0), values)


def three_in_a_race(data):
    """Fred's performance on a grid: given it, those of the others are truncated Gaussians."""
    grid = Grid.of((40.0, 160.0, 4001))
    fred = grid.points[0]
    above, jill, jill_variance = truth.truncated(120.0, 1625.0, low=fred)
    below, steve, steve_variance = truth.truncated(140.0, 925.0, high=fred)
    plays = {"jill": (jill, jill_variance), "fred": known(fred), "steve": (steve, steve_variance)}
    values = {f"{name} plays": one for name, one in plays.items()}
    for name, mean, variance in (("jill", 120.0, 1600.0), ("fred", 100.0, 25.0), ("steve", 140.0, 900.0)):
        values[name] = tuple(part[0] for part in of_prior(mean, variance, 25.0, plays[name]))
    return grid.entry(above + below + stats.norm.logpdf(fred, 100.0, np.sqrt(50.0)), values)


def inbox(data):
    grid = Grid.of((-6.0, 8.0, 401), (-6.0, 12.0, 401))
    weight, threshold = grid.points
    mean = weight[:, None] * data["alone"]
    low = np.where(data["replies"], threshold[:, None], -np.inf)
    high = np.where(data["replies"], np.inf, threshold[:, None])
    log_mass, *score = truth.truncated(mean, 10.0, low, high)
    prior = stats.norm.logpdf(weight) + stats.norm.logpdf(threshold, 0.0, np.sqrt(10.0))
    values = {"weight": known(weight), "threshold": known(threshold), "score": tuple(score)}
    return grid.entry(log_mass.sum(axis=1) + prior, values)


def childhood_asthma(data):
    """Gibbs sampling: the whole course of each child, of sixteen, then all chances."""
    test, courses = np.asarray(data["test"]), np.array(list(itertools.product([0, 1], repeat=4)))
    prior = np.stack([data["yes"], data["no"]], axis=1)

    def start(rng, chains):
        chance = {"first": np.full(chains, 0.2), "stays": np.tile([0.2, 0.8], (chains, 1))}
        return chance | {"positive": np.tile([0.1, 0.9], (chains, 1))}

    def sweep(rng, s):
        log_p = log_bernoulli(courses[:, 0] == 1, s["first"][:, None])
        log_p = log_p + log_bernoulli(courses[:, 1:] == 1, s["stays"][:, courses[:, :-1]]).sum(axis=2)
        seen = log_bernoulli(test[:, None], s["positive"][:, None][:, :, courses]).sum(axis=3)
        course = courses[truth.draw_category(rng, log_p[:, None] + seen)]
        first = rng.beta(1 + course[..., 0].sum(axis=1), 1 + (1 - course[..., 0]).sum(axis=1))
        stays, positive = np.empty_like(s["stays"]), np.empty_like(s["positive"])
        for state in range(2):
            after, tested = course[..., :-1] == state, course == state
            yes, no = (after & (course[..., 1:] == now) for now in (1, 0))
            stays[:, state] = rng.beta(1 + yes.sum(axis=(1, 2)), 1 + no.sum(axis=(1, 2)))
            yes, no = (tested & test).sum(axis=(1, 2)), (tested & ~test).sum(axis=(1, 2))
            positive[:, state] = rng.beta(prior[state, 0] + yes, prior[state, 1] + no)
        return {"first": first, "stays": stays, "positive": positive, "sensitised": course}

    def log_density(theta):
        chance = special.expit(theta)
        log_p = log_bernoulli(courses[:, 0] == 1, chance[:, :1])
        log_p = log_p + log_bernoulli(courses[:, 1:] == 1, chance[:, 1:3][:, courses[:, :-1]]).sum(axis=2)
        seen = log_bernoulli(test[:, None], chance[:, 3:][:, None][:, :, courses]).sum(axis=3)
        each = special.logsumexp(log_p[:, None] + seen, axis=2).sum(axis=1)
        a, b = np.array([1, 1, 1, *data["yes"]]), np.array([1, 1, 1, *data["no"]])
        return each + logit_beta(theta, a, b).sum(axis=1)

    def values(theta):
        chance = special.expit(theta)
        return {"first": known(chance[:, 0]), "stays": known(chance[:, 1:3]), "positive": known(chance[:, 3:])}

    integrated = truth.importance(log_density, [-1.5, -1.5, 1.5, -2.5, 2.5], values, count=2**14)
    return truth.agreed(truth.gibbs(start, sweep, lambda s: s, {"sensitised"}, chains=100), integrated)


def crowd_sourcing(data):
    """Gibbs sampling: classes given the confusions of all workers, and these given the classes."""
    who, what, label = (np.asarray(data[name]) for name in ("who", "what", "label"))
    of_item, of_worker = truth.one_hot(what, 30), truth.one_hot(who, 5)
    seen = truth.one_hot(label, 3)

    def start(rng, chains):
        return {"share": np.full((chains, 3), 1 / 3), "confusion": np.tile(data["belief"] / 5.0, (chains, 5, 1, 1))}

    def sweep(rng, s):
        each = np.log(s["confusion"][:, who, :, label]).transpose(1, 0, 2)
        log_p = np.log(s["share"])[:, None] + np.einsum("cnk,ni->cik", each, of_item)
        true = truth.one_hot(truth.draw_category(rng, log_p), 3)
        count = np.einsum("nw,cnk,nl->cwkl", of_worker, true[:, what], seen, optimize=True)
        share = truth.draw_dirichlet(rng, 1.0 + true.sum(axis=1))
        return {"share": share, "confusion": truth.draw_dirichlet(rng, data["belief"] + count), "true": true}

    return truth.gibbs(start, sweep, lambda s: s, {"true"}, chains=100)


def chess_through_time(data):
    prior = np.linalg.inv(truth.chain_precision(800.0**2, 1.0, 26.0**2, 3))

    def margins(skill):
        ahead = skill[:, data["winner"], data["when"]] - skill[:, data["loser"], data["when"]]
        return truth.truncated(ahead, 460.0**2, low=0.0)

    def skills(theta):
        return 1200.0 + np.einsum("ts,pks->pkt", np.linalg.cholesky(prior), theta.reshape(-1, 4, 3))

    def log_density(theta):
        return margins(skills(theta))[0].sum(axis=1) + stats.norm.logpdf(theta).sum(axis=1)

    def values(theta):
        return {"skill": known(skills(theta)), "margin": margins(skills(theta))[1:]}

    return truth.importance(log_density, np.zeros(12), values, count=2**18)


# Examples of RxInfer --------------------------------------------------------------------------------------------------


def coin(data):
    yes, no = np.sum(data["heads"]), np.sum(~np.asarray(data["heads"]))
    chance = stats.beta(4.0 + yes, 8.0 + no)
    log_evidence = special.betaln(4.0 + yes, 8.0 + no) - special.betaln(4.0, 8.0)
    return weighted("closed form", [log_evidence], {"chance": ([chance.mean()], [chance.var()])})


def coin_of_two_kinds(data):
    yes, no = np.sum(data["heads"]), np.sum(~np.asarray(data["heads"]))
    a, b = np.array([7.0, 2.0]), np.array([2.0, 7.0])
    chance = stats.beta(a + yes, b + no)
    log_weights = np.log([0.3, 0.7]) + special.betaln(a + yes, b + no) - special.betaln(a, b)
    return weighted("closed form", log_weights, {"first": [0.0, 1.0], "chance": (chance.mean(), chance.var())})


def line(data):
    """The spread on a grid of its logarithm; given it, intercept and slope are Gaussian."""
    grid = Grid.of((-5.0, 3.5, 4001))
    spread, design = np.exp(grid.points[0]), np.column_stack([np.ones(15), data["x"]])
    precision = design.T @ design / spread[:, None, None] ** 2 + np.eye(2) / 100.0
    covariance = np.linalg.inv(precision)
    mean = covariance @ (design.T @ data["y"]) / spread[:, None] ** 2
    log_evidence = -15 * (truth.LOG_ROOT_2_PI + np.log(spread)) - 0.5 * np.sum(data["y"] ** 2) / spread**2
    log_evidence += 0.5 * np.einsum("pi,pij,pj->p", mean, precision, mean)
    log_evidence -= 0.5 * np.linalg.slogdet(precision)[1] + np.log(100.0)
    values = {"noise": known(spread)}
    for i, name in enumerate(("intercept", "slope")):
        values[name] = mean[:, i], covariance[:, i, i]
    return grid.entry(log_evidence + stats.halfnorm.logpdf(spread, scale=5.0) + grid.points[0], values)


def binomial_regression(data):
    x, y = data["x"], data["y"]

    def log_density(w):
        likelihood = stats.binom.logpmf(y, 10, special.expit(w @ x.T)).sum(axis=1)
        return likelihood + stats.norm.logpdf(w, 0.0, np.sqrt(10.0)).sum(axis=1)

    return truth.importance(log_density, np.zeros(2), lambda w: {"w": known(w)})


def rotating_target(data):
    """All states at once: one Gaussian of fifty dimensions."""
    y, angle = np.ravel(data["y"]), np.pi / 10.0
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    root = np.zeros((25, 2, 25, 2))
    for t in range(25):
        root[t, :, t] = np.eye(2)
        for s in range(t):
            root[t, :, s] = turn @ root[t - 1, :, s]
    root = root.reshape(50, 50)
    covariance = root @ np.diag([100.0] * 2 + [0.1] * 48) @ root.T
    log_evidence, mean, variance = truth.given_noise(np.linalg.inv(covariance), 1.0, y)
    values = {"state": (mean.reshape(1, 25, 2), variance.reshape(1, 25, 2))}
    return weighted("closed form", [log_evidence], values)


def random_walk(data):
    grid = Grid.of((-4.5, 5.0, 61), (-4.5, 4.0, 61))
    steps, noise = np.exp(grid.points)
    precision = truth.chain_precision(100.0, 1.0, 1.0 / steps, 40)
    log_evidence, mean, variance = truth.given_noise(precision, 1.0 / noise, data["y"])
    log_prior = sum(gamma_of_logs(logs, 1.0, 1.0) for logs in grid.points)
    values = {"steps": known(steps), "noise": known(noise), "state": (mean, variance)}
    return grid.entry(log_evidence + log_prior, values)


def autoregression(data):
    grid = Grid.of((-1.3, 1.7, 91), (-4.0, 6.0, 91))
    coefficient, logs = grid.points
    precision = truth.chain_precision(10.0, coefficient, np.exp(-logs), 50)
    log_evidence, mean, variance = truth.given_noise(precision, 0.5, data["y"])
    log_prior = stats.norm.logpdf(coefficient) + gamma_of_logs(logs, 1.0, 1.0)
    values = {"coefficient": known(coefficient), "precision": known(np.exp(logs)), "state": (mean, variance)}
    return grid.entry(log_evidence + log_prior, values)


def two_signals(data):
    """Each signal is seen with the other one and the noise as correlated noise."""
    y, signals = data["y"], {"walk": (10.0, 1.0, 0.1), "wave": (1.0, -0.7, 0.5)}
    covariances = {name: np.linalg.inv(truth.chain_precision(*of, 30)) for name, of in signals.items()}
    seen = sum(covariances.values()) + 0.1 * np.eye(30)
    values = {}
    for name, covariance in covariances.items():
        gain = np.linalg.solve(seen, covariance).T
        values[name] = (gain @ y)[None], np.diag(covariance - gain @ covariance)[None]
    return weighted("closed form", [stats.multivariate_normal(np.zeros(30), seen).logpdf(y)], values)


def probit_states(data):
    x = np.linspace(-12.0, 12.0, 2401)
    sign, cell = np.where(data["y"], 1.0, -1.0), np.log(x[1] - x[0])
    first = stats.norm.logpdf(x, 0.0, 10.0) + cell
    step = stats.norm.logpdf(x, x[:, None] + 0.1, 0.1) + cell
    return of_chain("state", x, first, step, special.log_ndtr(sign[:, None] * x))


def poisson_tracker(data):
    x = np.linspace(-14.0, 6.0, 2001)
    cell = np.log(x[1] - x[0])
    seen = stats.poisson.logpmf(np.array(data["y"])[:, None], np.exp(x))
    first, step = stats.norm.logpdf(x, 0.0, 10.0) + cell, stats.norm.logpdf(x, x[:, None], np.sqrt(0.1)) + cell
    return of_chain("log rate", x, first, step, seen)


def of_chain(name, x, first, step, seen):
    """The entry of a chain of one number over the points of a grid."""
    marginal, log_evidence = truth.smoothed(first, step, seen)
    if marginal[:, [0, -1]].max() > 1e-8:
        raise ValueError("the grid ends where the chain has mass")
    mean = marginal @ x
    sd = np.sqrt(marginal @ x**2 - mean**2)
    how = f"forward and backward over a grid of {len(x)} points"
    return truth.entry(how, {name: {"mean": truth.rounded(mean), "sd": truth.rounded(sd)}}, log_evidence)


def hierarchical_gaussian_filter(data):
    """Both chains on a grid of two dimensions, forward and backward; the step of x depends on the new z."""
    z, x, y = np.linspace(-7.5, 7.0, 117), np.linspace(-14.0, 10.0, 481), data["y"]
    step_z = np.exp(stats.norm.logpdf(z, z[:, None], np.sqrt(0.2))) * (z[1] - z[0])
    step_x = np.exp(stats.norm.logpdf(x, x[:, None], np.exp(0.5 * z)[:, None, None])) * (x[1] - x[0])
    step_x /= step_x.sum(axis=2).max(axis=1)[:, None, None].clip(1.0)  # narrow steps fall between the points
    seen = stats.norm.pdf(y[:, None], x, np.sqrt(0.1))
    forward = np.outer(stats.norm.pdf(z), stats.norm.pdf(x)) * (z[1] - z[0]) * (x[1] - x[0]) * seen[0]
    forwards, log_evidence = [forward / forward.sum()], np.log(forward.sum())
    for one in seen[1:]:
        forward = np.einsum("zx,zxu->zu", step_z.T @ forwards[-1], step_x, optimize=True) * one
        forwards.append(forward / forward.sum())
        log_evidence += np.log(forward.sum())
    backward, marginals = np.ones_like(forward), [forwards[-1]]
    for one, before in zip(seen[:0:-1], forwards[-2::-1], strict=True):
        backward = step_z @ np.einsum("zxu,zu->zx", step_x, backward * one, optimize=True)
        backward /= backward.max()
        marginals.append(before * backward / np.sum(before * backward))
    marginal = np.array(marginals[::-1])
    parameters = {}
    for name, points, axis in (("z", z, 2), ("x", x, 1)):
        one = marginal.sum(axis=axis)
        if one[:, [0, -1]].max() > 1e-6:
            raise ValueError(f"the grid of {name} ends where it has mass {one[:, [0, -1]].max():.2g}")
        mean = one @ points
        sd = np.sqrt(one @ points**2 - mean**2)
        parameters[name] = {"mean": truth.rounded(mean), "sd": truth.rounded(sd)}
    return truth.entry("forward and backward over a grid of 117 by 481 points", parameters, log_evidence)


def vacuum_cleaner(data):
    """Gibbs sampling: the whole path by filtering and drawing backward, then the rows of both tables."""
    floor, belief = np.asarray(data["floor"]), data["belief"]

    def start(rng, chains):
        move = np.tile(0.1 + 0.7 * np.eye(3), (chains, 1, 1))
        return {"move": move, "sense": np.tile(belief / belief.sum(axis=1, keepdims=True), (chains, 1, 1))}

    def sweep(rng, s):
        filtered = [s["sense"][:, :, floor[0]] / 3.0]
        for seen in floor[1:]:
            ahead = np.einsum("ci,cij->cj", filtered[-1], s["move"]) * s["sense"][:, :, seen]
            filtered.append(ahead / ahead.sum(axis=1, keepdims=True))
        path = [truth.draw_category(rng, np.log(filtered[-1]))]
        for before in filtered[-2::-1]:
            to = np.take_along_axis(s["move"], path[-1][:, None, None], 2)[..., 0]
            path.append(truth.draw_category(rng, np.log(before * to)))
        state = truth.one_hot(np.stack(path[::-1], axis=1), 3)
        moved = np.einsum("cti,ctj->cij", state[:, :-1], state[:, 1:])
        sensed = np.einsum("cti,tj->cij", state, truth.one_hot(floor, 3))
        move, sense = truth.draw_dirichlet(rng, 1.0 + moved), truth.draw_dirichlet(rng, belief + sensed)
        return {"move": move, "sense": sense, "state": state}

    def tables(theta):
        """Rows of both tables, whose logarithms over that of the last entry are theta."""
        logs = np.concatenate([theta.reshape(-1, 6, 2), np.zeros((len(theta), 6, 1))], axis=2)
        return special.softmax(logs, axis=2)[:, :3], special.softmax(logs, axis=2)[:, 3:]

    def log_density(theta):
        move, sense = tables(theta)
        prior = np.concatenate([np.ones((3, 3)), belief])
        log_p = (prior * np.log(np.concatenate([move, sense], axis=1))).sum(axis=(1, 2))
        log_p = log_p + np.sum(special.gammaln(prior.sum(axis=1)) - special.gammaln(prior).sum(axis=1))
        ahead = np.full((len(theta), 3), 1.0 / 3.0)
        for t, seen in enumerate(floor):
            ahead = (np.einsum("pi,pij->pj", ahead, move) if t else ahead) * sense[:, :, seen]
            log_p = log_p + np.log(ahead.sum(axis=1))
            ahead = ahead / ahead.sum(axis=1, keepdims=True)
        return log_p

    def values(theta):
        move, sense = tables(theta)
        return {"move": known(move), "sense": known(sense)}

    start_at = np.log(np.concatenate([0.1 + 0.7 * np.eye(3), belief / 12.0]))
    integrated = truth.importance(log_density, (start_at[:, :2] - start_at[:, 2:]).ravel(), values, count=2**17)
    return truth.agreed(truth.gibbs(start, sweep, lambda s: s, {"state"}, chains=200), integrated)


def mixture_summed(x, log_prior):
    """Two Gaussians on a line with classes summed out; theta: logit of the first share, means, logs of the sds."""

    def log_density(theta):
        log_share = np.stack([special.log_expit(theta[:, 0]), special.log_expit(-theta[:, 0])], axis=1)
        each = log_share[:, None] + stats.norm.logpdf(x[:, None], theta[:, None, 1:3], np.exp(theta[:, None, 3:]))
        return special.logsumexp(each, axis=2).sum(axis=1) + log_share.sum(axis=1) + log_prior(theta)

    return log_density


def mixture_on_a_line(data):
    """Gibbs sampling; the classes are told apart by their priors."""
    x, centre = data["x"], np.array(data["centre"])

    def start(rng, chains):
        return {"second": np.full(chains, 0.5), "mean": np.tile(centre, (chains, 1)), "precision": np.ones((chains, 2))}

    def sweep(rng, s):
        off = x[:, None] - s["mean"][:, None]
        log_share = np.log(np.stack([1.0 - s["second"], s["second"]], axis=1) * np.sqrt(s["precision"]))
        z = truth.draw_category(rng, log_share[:, None] - 0.5 * s["precision"][:, None] * off**2)
        member = truth.one_hot(z, 2)
        count = member.sum(axis=1)
        variance = 1.0 / (0.25 + s["precision"] * count)
        mean = variance * (0.25 * centre + s["precision"] * (member * x[:, None]).sum(axis=1))
        mean = mean + np.sqrt(variance) * rng.normal(size=mean.shape)
        rate = 1.0 + 0.5 * (member * (x[:, None] - mean[:, None]) ** 2).sum(axis=1)
        precision = rng.gamma(1.0 + 0.5 * count) / rate
        second = rng.beta(1.0 + count[:, 1], 1.0 + count[:, 0])
        return {"second": second, "mean": mean, "precision": precision, "z": z}

    def log_prior(theta):
        logs = -2.0 * theta[:, 3:]
        return (stats.norm.logpdf(theta[:, 1:3], centre, 2.0) + gamma_of_logs(logs, 1.0, 1.0) + np.log(2.0)).sum(axis=1)

    def values(theta):
        found = {"second": known(special.expit(-theta[:, 0])), "mean": known(theta[:, 1:3])}
        return found | {"precision": known(np.exp(-2.0 * theta[:, 3:]))}

    log_density = mixture_summed(x, log_prior)
    integrated = truth.importance(log_density, [-0.7, -2.0, 7.0, 0.0, 0.3], values)
    return truth.agreed(truth.gibbs(start, sweep, lambda s: s, {"z"}, chains=100), integrated)


# Networks, and other staples ------------------------------------------------------------------------------------------


def of_table(probability, *parents):
    """P(true) by the states of boolean parents."""
    return np.array(probability)[tuple(parent.astype(int) for parent in parents)]


def wet_grass(data):
    def log_probability(s):
        log_p = np.log(0.5) + log_bernoulli(s["sprinkler"], np.where(s["cloudy"], 0.1, 0.5))
        log_p = log_p + log_bernoulli(s["rain"], np.where(s["cloudy"], 0.8, 0.2))
        return log_p + np.log(of_table(data["p"], s["sprinkler"], s["rain"]))

    return enumerated(["cloudy", "sprinkler", "rain"], log_probability)


def burglary(data):
    def log_probability(s):
        log_p = log_bernoulli(s["burglary"], 0.001) + log_bernoulli(s["earthquake"], 0.002)
        log_p = log_p + log_bernoulli(s["alarm"], of_table(data["p"], s["burglary"], s["earthquake"]))
        return log_p + np.log(np.where(s["alarm"], 0.9 * 0.7, 0.05 * 0.01))

    return enumerated(["burglary", "earthquake", "alarm"], log_probability)


def asia(data):
    def log_probability(s):
        ill = s["tuberculosis"] | s["cancer"]
        log_p = np.log(0.01 * 0.5) + log_bernoulli(s["tuberculosis"], 0.05)
        log_p = log_p + log_bernoulli(s["cancer"], np.where(s["smoker"], 0.1, 0.01))
        log_p = log_p + log_bernoulli(s["bronchitis"], np.where(s["smoker"], 0.6, 0.3))
        return log_p + np.log(np.where(ill, 0.02, 0.95) * of_table(data["p"], ill, s["bronchitis"]))

    return enumerated(["smoker", "tuberculosis", "cancer", "bronchitis"], log_probability)


def student(data):
    states = np.array(list(itertools.product(range(2), range(2), range(3))))
    hard, bright, grade = states.T
    chances = np.where(hard, 0.4, 0.6) * np.where(bright, 0.3 * 0.8, 0.7 * 0.05)
    chances = chances * np.array(data["grades"])[hard, bright, grade] * (1.0 - np.array(data["praise"])[grade])
    values = {"hard": hard, "bright": bright, "grade": truth.one_hot(grade, 3)}
    return weighted("exact enumeration", np.log(chances), values)


def monty_hall(data):
    with np.errstate(divide="ignore"):
        log_weights = np.log(data["opens"][:, data["chosen"], data["opened"]] / 9.0)
    return weighted("exact enumeration", log_weights, {"prize": np.eye(3)})


def two_dice(data):
    first, second = np.array(list(itertools.product(range(6), repeat=2))).T
    with np.errstate(divide="ignore"):
        log_weights = np.log((first + second == data["total"]) / 36.0)
    values = {"first": truth.one_hot(first, 6), "second": truth.one_hot(second, 6), "larger": first > second}
    return weighted("exact enumeration", log_weights, values)


def hamming_code(data):
    def log_probability(s):
        sent = {name: sum(s[letter] for letter in name) % 2 for name in ("a", "b", "c", "d", "abd", "acd", "bcd")}
        right = [np.where(sent[name] == data[f"received {name}"], 0.9, 0.1) for name in sent]
        return np.log(1.0 / 16.0) + np.log(right).sum(axis=0)

    return enumerated(list("abcd"), log_probability)


def noisy_image(data):
    cells = [(i, j) for i in range(3) for j in range(3)]

    def log_probability(s):
        log_p = np.zeros(512)
        for i, j in cells:
            one = s[f"pixel {i}{j}"]
            log_p = log_p + np.log(np.where(one == data[f"seen {i}{j}"], 0.7, 0.3) / 2.0)
            for near in ((i + 1, j), (i, j + 1)):
                if near in cells:
                    log_p = log_p + np.log(np.where(one == s[f"pixel {near[0]}{near[1]}"], 0.8, 0.2))
        return log_p

    return enumerated([f"pixel {i}{j}" for i, j in cells], log_probability)


def diagnosis(data):
    chance = {"flu": 0.1, "cold": 0.2, "allergy": 0.15, "fever by flu": 0.8, "fever by cold": 0.2, "cough by flu": 0.6}
    chance |= {"cough by cold": 0.5, "sneezing by cold": 0.7, "sneezing by allergy": 0.8, "rash by allergy": 0.3}
    chance |= {f"{finding} by itself": 0.02 for finding in ("fever", "cough", "sneezing", "rash")}

    def log_probability(s):
        log_p = sum(log_bernoulli(s[name], p) for name, p in chance.items())
        for finding in ("fever", "cough", "sneezing", "rash"):
            found = s[f"{finding} by itself"]
            for name in ("flu", "cold", "allergy"):
                if f"{finding} by {name}" in chance:
                    found = found | (s[name] & s[f"{finding} by {name}"])
            log_p = log_p + np.log(found == data[finding])
        return log_p

    return enumerated([*chance], log_probability)


def handedness(data):
    counts = [np.array([np.sum(data[name]), np.sum(~np.array(data[name]))]) for name in ("student", "lecturer")]
    prior = np.array([0.72, 0.08])
    apart, alike = [prior + one for one in counts], [prior + counts[0] + counts[1], prior]
    log_evidence = [sum(special.betaln(*one) for one in case) for case in (apart, alike)]
    values = {"alike": [0.0, 1.0]}
    for name, of_apart, of_alike in zip(("of students", "of lecturers"), apart, alike, strict=True):
        chance = stats.beta(*np.transpose([of_apart, of_alike]))
        values[name] = chance.mean(), chance.var()
    log_weights = np.log(0.5) + np.array(log_evidence) - 2.0 * special.betaln(*prior)
    return weighted("closed form", log_weights, values)


def ball_counting(data):
    """The number and all colours enumerated; given these, draws are independent."""
    blue = np.array(list(itertools.product([0, 1], repeat=8)))
    log_weights, blues, counts, picked = [], [], [], []
    for number in range(8):
        each = data["pick"][number] * np.where(blue == 1, 0.8, 0.2)
        log_weights.append(np.log(1.0 / 8.0 / 256.0) + len(data["seen"]) * np.log(each.sum(axis=1)))
        blues.append(blue)
        counts.append(np.tile(np.arange(8) == number, (256, 1)))
        picked.append(np.repeat((each / each.sum(axis=1, keepdims=True))[:, None], len(data["seen"]), axis=1))
    values = {"count": counts, "blue": blues, "picked": picked}
    values = {name: np.concatenate(value).astype(float) for name, value in values.items()}
    return weighted("exact enumeration", np.concatenate(log_weights), values)


def spam_filter(data):
    """The kinds of the three new messages enumerated; given them, all chances are Beta distributed."""
    spam, has, new = np.asarray(data["spam"]), np.asarray(data["has"]), np.asarray(data["new has"])
    states, log_weights, shares, chances = np.array(list(itertools.product([0, 1], repeat=3))), [], [], []
    for state in states:
        kinds, words = np.concatenate([spam, state]).astype(int), np.concatenate([has, new])
        share = 1.0 + np.array([np.sum(kinds), np.sum(1 - kinds)])
        chance = [[1 + np.sum(words[kinds == kind] == one, axis=0) for kind in range(2)] for one in (True, False)]
        log_weights.append(special.betaln(*share) + special.betaln(*chance).sum())
        shares.append(share)
        chances.append(chance)
    share, chance = stats.beta(*np.transpose(shares)), stats.beta(*np.swapaxes(chances, 0, 1))
    values = {"spam share": (share.mean(), share.var()), "chance": (chance.mean(), chance.var())}
    return weighted("exact enumeration", log_weights, values | {"new spam": states.astype(float)})


def clutter(data):
    grid = Grid.of((-40.0, 40.0, 16001))
    mean = grid.points[0][:, None]
    signal, noise = stats.norm.logpdf(data["x"], mean, 1.0), stats.norm.logpdf(data["x"], 0.0, np.sqrt(10.0))
    both = np.logaddexp(signal, noise) + np.log(0.5)
    values = {"mean": known(mean[:, 0]), "clean": special.expit(signal - noise)}
    return grid.entry(both.sum(axis=1) + stats.norm.logpdf(mean[:, 0], 0.0, 10.0), values)


def two_thermometers(data):
    grid = Grid.of((-5.0, 5.5, 401), (-5.5, 4.5, 401))
    precision, reading = np.exp(np.stack(grid.points, axis=1)), np.array(data["reading"])
    n, total, squares = len(reading), reading.sum(axis=0), (reading**2).sum(axis=0)
    variance = 1.0 / (0.01 + n * precision.sum(axis=1))
    mean = variance * (0.2 + precision @ total)
    log_evidence = 0.5 * n * np.log(precision).sum(axis=1) - 2 * n * truth.LOG_ROOT_2_PI - 0.5 * precision @ squares
    log_evidence += 0.5 * (np.log(0.01 * variance) + mean**2 / variance - 4.0)
    log_prior = sum(gamma_of_logs(logs, 2.0, 1.0) for logs in grid.points)
    return grid.entry(log_evidence + log_prior, {"temperature": (mean, variance), "precision": known(precision)})


def tanks(data):
    """The bound by its excess over the largest number seen, on a grid of its logarithm."""
    logs = np.linspace(-12.0, 7.0, 20001)
    largest = max(data["serial"]) + np.exp(logs)
    log_density = stats.norm.logpdf(largest, 200.0, 100.0) - len(data["serial"]) * np.log(largest)
    log_weights = log_density + logs + np.log(logs[1] - logs[0])
    return weighted("quadrature of 20,001 points", log_weights, {"largest": known(largest)})


def rainfall(data):
    grid = Grid.of((-3.0, 3.5, 601), (-4.5, 3.0, 601))
    shape, rate = np.exp(grid.points)
    rain = data["rain"]
    log_likelihood = len(rain) * (shape * np.log(rate) - special.gammaln(shape))
    log_likelihood += (shape - 1.0) * np.sum(np.log(rain)) - rate * np.sum(rain)
    log_prior = sum(gamma_of_logs(logs, 2.0, 1.0) for logs in grid.points)
    return grid.entry(log_likelihood + log_prior, {"shape": known(shape), "rate": known(rate)})


def old_faithful(data):
    """Gibbs sampling, the spreads by draws from a fine grid; kinds are told apart by their means in each draw."""
    x = np.array(data["minutes"])
    logs = np.linspace(-4.5, 1.5, 601)
    log_prior = stats.halfnorm.logpdf(np.exp(logs)) + logs

    def start(rng, chains):
        z = np.broadcast_to(x > 3.0, (chains, len(x))).astype(int)
        return {"z": z, "spread": np.full((chains, 2), 0.4)}

    def sweep(rng, s):
        member = truth.one_hot(s["z"], 2)
        count, precision = member.sum(axis=1), s["spread"] ** -2.0
        share = truth.draw_dirichlet(rng, 1.0 + count)
        variance = 1.0 / (1.0 / 9.0 + precision * count)
        mean = variance * (3.0 / 9.0 + precision * (member * x[:, None]).sum(axis=1))
        mean = mean + np.sqrt(variance) * rng.normal(size=mean.shape)
        off = x[:, None] - mean[:, None]
        squares = (member * off**2).sum(axis=1)[..., None]
        log_p = log_prior - count[..., None] * logs - 0.5 * squares * np.exp(-2.0 * logs)
        spread = np.exp(logs[truth.draw_category(rng, log_p)])
        log_p = np.log(share / spread)[:, None] - 0.5 * (off / spread[:, None]) ** 2
        return {"z": truth.draw_category(rng, log_p), "share": share, "mean": mean, "spread": spread}

    def read(s):
        order = np.argsort(s["mean"], axis=1)
        found = {name: np.take_along_axis(s[name], order, 1) for name in ("share", "mean", "spread")}
        return found | {"z": np.take_along_axis(truth.one_hot(s["z"], 2), order[:, None], 2)}

    def log_prior_of(theta):
        means = stats.norm.logpdf(theta[:, 1:3], 3.0, 3.0)
        return (means + stats.halfnorm.logpdf(np.exp(theta[:, 3:])) + theta[:, 3:]).sum(axis=1)

    def values(theta):
        share = special.expit(np.stack([theta[:, 0], -theta[:, 0]], axis=1))
        return {"share": known(share), "mean": known(theta[:, 1:3]), "spread": known(np.exp(theta[:, 3:]))}

    log_density = mixture_summed(x, log_prior_of)
    integrated = truth.importance(log_density, [-0.6, 1.9, 4.2, -1.7, -0.7], values)
    found = truth.agreed(truth.gibbs(start, sweep, read, {"z"}, chains=100), integrated, orders=2)
    return found | {"permuted": {"share": 0, "mean": 0, "spread": 0, "z": 1}}


def main():
    models = {function.__name__: function for function in infernet.MODELS}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[*models], choices=[*models], metavar="NAME")
    found = json.loads(FILE.read_text()) if FILE.exists() else {}
    for name in parser.parse_args().only:
        _, data, *_ = models[name]()
        found[name] = globals()[name](data)
        if name in REFUSED:
            found[name]["refused"] = REFUSED[name]
        print(f"{name}: {found[name]['how']}; log evidence {found[name]['log_evidence']}", flush=True)
        ordered = {name: found[name] for name in models if name in found}
        FILE.write_text(json.dumps(ordered, indent=None, separators=(",", ":")).replace('"how"', '\n"how"') + "\n")


if __name__ == "__main__":
    main()
