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

    found = truth.gibbs(start, sweep, read, {"z"}, chains=100, draws=2000)
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

    return truth.gibbs(start, sweep, read, {"key", "knows it"}, chains=100, draws=5000)


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

    return truth.gibbs(start, sweep, lambda s: s, chains=100, draws=5000)


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

    return truth.gibbs(start, sweep, read, {"csharp", "sql"})


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
