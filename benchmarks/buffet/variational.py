"""Mean field beside samplers: figures 6.2 to 6.5, tables 6.1 and 6.2 and figure 8.1 of the thesis, ours beside them.

Features with their sticks or, finite, with independent weights; uncollapsed, semi-collapsed and accelerated steps for
both priors, and the particle filter, which gives its last answer alone. Noise and values are given to all: for made
data those that made them, for Yale faces (of another release) 0.25 and 0.75 of their deviation. A third of the entries
of the last half of the rows is hidden; densities are of single entries, in nats.
"""

import common

# isort: split
import harness
import jax
import numpy as np
import sets

from cavity.models.buffet.likelihoods import LaplaceICA, LinearGaussian
from cavity.models.buffet.likelihoods.contract import Rows
from cavity.models.buffet.likelihoods.linear_gaussian import log_marginal
from cavity.models.buffet.samplers.accelerated import accelerated
from cavity.models.buffet.samplers.law import Law
from cavity.models.buffet.samplers.semi_collapsed import semi_collapsed
from cavity.models.buffet.samplers.uncollapsed import uncollapsed
from cavity.models.buffet.variational import fit_variational

MADE = LinearGaussian(noise_precision=4.0, value_precision=1.0)
SCALED = LinearGaussian(noise_precision=16.0, value_precision=16.0 / 9.0)
MASS = 4.0
YALE = {
    "Gibbs, finite": ("464.19; -2.250e6", "940.47; -2.246e6", "2973.7; -2.247e6"),
    "mean field, finite": ("163.24; -1.066e6", "767.1; -0.908e6", "10072; -0.746e6"),
    "mean field": ("176.62; -1.051e6", "632.53; -0.914e6", "19061; -0.750e6"),
}
SPEECH = {2: "56; -0.7444", 5: "120; -0.4220", 9: "201; -0.4205", None: "186; -0.4257"}


def last_third(shape, seed):
    """A third of the entries of the last half of the rows."""
    found = common.hidden(shape, 1.0 / 3.0, seed)
    found[: shape[0] // 2] = False
    return found


def by_field(values, gaps, likelihood, law, places, seed, restarts=2):
    """Mean log density of hidden entries and of those seen, CPU seconds, and the fit."""
    cpu = harness.cpu_seconds()
    rows = Rows(np.where(gaps, 0.0, values), ~gaps)
    fitted = fit_variational(rows, likelihood, law, jax.random.key(seed), places=places, restarts=restarts)
    cpu = harness.cpu_seconds() - cpu
    every = fitted.log_density(Rows(values, np.ones_like(gaps)), fitted.probabilities, jax.random.key(seed + 1))
    return [every[gaps].mean(), every[~gaps].mean(), cpu, (fitted.probabilities.sum(axis=0) > 0.5).sum()], fitted


def by_chain(values, gaps, likelihood, law, sweep, seed, sweeps):
    """The same of the second half of a chain, from a draw of the prior."""
    run = common.sample(values, seed, sweeps, max(sweeps // 2, 2), likelihood, law, sweep, chains=1, held_out=gaps)
    seen = run.found["log_likelihood"][0].mean() / (~gaps).sum()
    return [run.score, seen, run.cpu, run.found["number_of_features"].mean()], run


def evolution(report, arguments, sweeps, rows, columns):
    """The end points of figures 6.2 and 6.3."""
    lines, measured = [], {}
    for count, features in ((rows, 20), (rows // 5, 25)):
        values = sets.from_sticks(count, columns, features, arguments.seed, MASS)
        gaps = last_third(values.shape, arguments.seed)
        endless, finite = Law(mass=MASS), Law(mass=MASS, features=features)
        found = {
            "mean field": by_field(values, gaps, MADE, endless, features, arguments.seed)[0],
            "mean field, finite": by_field(values, gaps, MADE, finite, None, arguments.seed)[0],
        }
        steps = {"accelerated": accelerated, "semi-collapsed": semi_collapsed, "uncollapsed": uncollapsed}
        for name, sweep in steps.items():
            found[name] = by_chain(values, gaps, MADE, endless, sweep, arguments.seed, sweeps)[0]
            if name != "semi-collapsed":  # it differs by births alone
                found[f"{name}, finite"] = by_chain(values, gaps, MADE, finite, sweep, arguments.seed, sweeps)[0]
        lines += [
            [f"{count} rows, {features} features: {name}", *map(common.shown, each)] for name, each in found.items()
        ]
        measured |= {f"{count}, {name}": each for name, each in found.items()}
    note = (
        f"{columns} columns; {sweeps} sweeps of one chain, mean field from two starts; the thesis ran 500 and 100 rows "
        "of 500 columns for 30 minutes from five starts. Log density of a hidden and of a seen entry, CPU seconds with "
        "compilations, features. In the thesis finite uncollapsed steps rise fastest with 500 rows and are stuck, mean "
        "field soon is better; with 100 rows samplers are better than mean field."
    )
    columns = ("", "hidden", "seen", "CPU s", "features")
    report.table("Made data (figures 6.2 and 6.3)", note, columns, lines, measured)


def grid(report, arguments, sweeps):
    """Figures 6.4 and 6.5: the corners of the grid of rows and columns, at 20 features."""
    lines, measured = [], {}
    for rows, columns in ((10, 10), (10, 300), (300, 10), (300, 300)):
        values = sets.from_sticks(rows, columns, 20, arguments.seed, MASS)
        gaps = last_third(values.shape, arguments.seed)
        field = by_field(values, gaps, MADE, Law(mass=MASS), 20, arguments.seed)[0]
        chain = by_chain(values, gaps, MADE, Law(mass=MASS), accelerated, arguments.seed, sweeps)[0]
        for name, found in (("mean field", field), ("accelerated", chain)):
            lines.append([f"{rows} x {columns}, {name}", *map(common.shown, found)])
            measured[f"{rows} x {columns}, {name}"] = found
    note = (
        f"20 features, {sweeps} sweeps; the thesis has 5 to 1000 rows and columns, 1000 sweeps of three chains. There "
        "mean field takes nearly the same time for any number of columns, is worse than samplers for few rows and as "
        "good for many. Times have compilations, some seconds, in them."
    )
    report.table(
        "Rows and columns (figures 6.4 and 6.5)", note, ("", "hidden", "seen", "CPU s", "features"), lines, measured
    )


def yale(report, arguments, sweeps, sizes):
    """Table 6.1."""
    values = sets.yale(arguments)
    values = values - values.mean(axis=0)
    values /= values.std()
    gaps = last_third(values.shape, arguments.seed)
    lines, measured = [], {}
    for size in sizes:
        finite, endless = Law(mass=2.0, features=size), Law(mass=2.0)
        found = {
            "Gibbs, finite": by_chain(values, gaps, SCALED, finite, uncollapsed, arguments.seed, sweeps)[0],
            "mean field, finite": by_field(values, gaps, SCALED, finite, None, arguments.seed)[0],
            "mean field": by_field(values, gaps, SCALED, endless, size, arguments.seed)[0],
        }
        for name, each in found.items():
            theirs = YALE[name][(5, 10, 25).index(size)]
            lines.append([f"K = {size}, {name}", *map(common.shown, each), theirs])
            measured[f"{size}, {name}"] = each
    note = (
        f"165 faces of 1024 pixels over their deviation, {sweeps} sweeps; the thesis has 722 and 200 sweeps. Last "
        "column: its seconds and log likelihood of all that was hidden."
    )
    columns = ("", "hidden", "seen", "CPU s", "features", "thesis")
    report.table("Yale faces (table 6.1)", note, columns, lines, measured)
    return values


def modes(report, arguments, values, sweeps):
    """Figure 8.1: which mode is found how soon, by the log likelihood with values integrated out."""
    gaps, law = np.zeros(values.shape, bool), Law(mass=2.0)
    given = {"noise_precision": 16.0, "value_precision": 16.0 / 9.0}
    rows = Rows(values, ~gaps)
    cpu = harness.cpu_seconds()
    fitted = fit_variational(rows, SCALED, law, jax.random.key(arguments.seed), places=25, restarts=2)
    answers = {"mean field, 25 places": (fitted.probabilities > 0.5, harness.cpu_seconds() - cpu)}
    for name, start in (("accelerated", None), ("accelerated from mean field", fitted)):
        run = common.sample(values, arguments.seed, sweeps, sweeps, SCALED, law, accelerated, chains=1, start=start)
        draws = run.found.shape[1]
        for at in (draws // 10, draws - 1):
            spent = float(run.found.chains.seconds[0, at])
            answers[f"{name}, sweep {at + 1}"] = run.found.draw(0, at).active, spent
    lines, measured = [], {}
    for name, (active, seconds) in answers.items():
        with jax.enable_x64(True):
            log = float(log_marginal(values, active, given))
        lines.append([name, common.shown(seconds), f"{log:.0f}", str(int(active.any(axis=0).sum()))])
        measured[name] = seconds, log
    note = (
        "All entries seen. CPU seconds with compilations, and without those of the chain's start; log likelihood of "
        "the matrix, for mean field that of probabilities above a half. The thesis: accelerated steps reach a better "
        "mode sooner than mean field, and collapsed ones are slower than both."
    )
    report.table("Modes of Yale faces (figure 8.1)", note, ("", "CPU s", "log likelihood", "features"), lines, measured)


def speech(report, arguments, sweeps):
    """Table 6.2, on five made speakers."""
    values = sets.speech(seed=arguments.seed)
    values = values / values.std()
    gaps = last_third(values.shape, arguments.seed)
    lines, measured = [], {}
    for size in (2, 5, 9, None):
        law = Law(mass=2.0, features=size)
        found = by_chain(values, gaps, LaplaceICA(), law, uncollapsed, arguments.seed, sweeps)[0]
        lines.append([f"Gibbs, K = {size or 'any'}", *map(common.shown, found), SPEECH[size]])
        measured[str(size)] = found
    found = by_field(values, gaps, LinearGaussian(), Law(mass=2.0), 9, arguments.seed)[0]
    lines.append(["mean field of sums without loudness, K = 9", *map(common.shown, found), "8491; -0.5486"])
    note = (
        f"245 x 10, {sweeps} sweeps by steps with Laplace weights of each row. Mean field of that likelihood is not "
        "there: its line has the linear Gaussian one. Last column: the thesis' seconds and log likelihood."
    )
    columns = ("", "hidden", "seen", "CPU s", "features", "thesis")
    report.table("Speech (table 6.2, a stand-in)", note, columns, lines, measured | {"mean field": found})


def main():
    parser = common.options(__doc__.splitlines()[0])
    parser.add_argument("--sweeps", type=int, default=30, help="of each chain")
    parser.add_argument("--rows", type=int, default=100, help="of made data; the thesis has 500")
    parser.add_argument("--columns", type=int, default=50, help="of made data; the thesis has 500")
    arguments = parser.parse_args()
    sweeps, sizes = (6, (5,)) if arguments.quick else (arguments.sweeps, (5, 25))
    report = common.report("variational", arguments, sweeps=sweeps, rows=arguments.rows, columns=arguments.columns)
    values = yale(report, arguments, sweeps, sizes)
    modes(report, arguments, values, sweeps)
    if not arguments.quick:
        evolution(report, arguments, sweeps, arguments.rows, arguments.columns)
        grid(report, arguments, sweeps)
    speech(report, arguments, sweeps)


if __name__ == "__main__":
    main()
