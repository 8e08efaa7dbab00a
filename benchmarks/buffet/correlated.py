"""Features that occur together: tables 7.2 and 7.3 of the thesis on correlated features, ours beside them.

Five priors: categories alone (DP), features alone (IBP), categories with menus of features (DP-IBP), several categories
for each row (IBP-IBP) and a noisy-or of them. Each starts where a simpler one ended, as in the thesis: IBP and DP-IBP
from DP, IBP-IBP from DP-IBP, the noisy-or from IBP-IBP. Features have values that are not negative, tags are seen but
for misses and mistakes; all numbers are learned. Gene expression is real; the others are stand-ins, each column of
deviation one, so that numbers of the thesis, whose data were in their own units, compare by order and not by size.
"""

import common

# isort: split
from typing import NamedTuple

import harness
import jax
import numpy as np
import sets

from cavity.engine.mcmc.run import run
from cavity.models.buffet.correlated import Correlated, DpIbp, IbpIbp, NoisyOrIbp, Partition, as_features
from cavity.models.buffet.likelihoods import Detection, ExponentialGaussian
from cavity.models.buffet.likelihoods.contract import Rows
from cavity.models.buffet.samplers.births import given_rows
from cavity.models.buffet.samplers.law import Law

VAGUE = (1.0, 1.0)
LAWS = {
    "DP": (Partition(VAGUE), None),
    "DP-IBP": (DpIbp(VAGUE, VAGUE), "DP"),
    "IBP-IBP": (IbpIbp(VAGUE, VAGUE), "DP-IBP"),
    "noisy-or": (NoisyOrIbp(VAGUE, VAGUE, (1.0, 9.0)), "IBP-IBP"),
}  # each with what it starts from
THESIS = {
    "UN": ("-3.5e5; 18.0e4", "-1.7e5; 8.5e4", "-17.0e5; 86.0e4", "-25.0e5; 120.0e4", "-58.0e5; 290.0e4"),
    "jokes": ("-45.5; 22.6", "-58.7; 29.2", "-44.0; 21.9", "-48.6; 24.2", "-45.6; 22.7"),
    "genes": ("-1.2; 0.5", "-1.5; 0.6", "-1.4; 0.6", "-1.6; 0.6", "-2.0; 0.9"),
    "robot": ("0.8; 0.2", "0.7; 0.3", "0.8; 0.1", "0.8; 0.2", "0.7; 0.3"),
    "India": ("-2.0e9; 1.0e9", "-8.0e9; 4.0e9", "-2.7e9; 1.4e9", "-3.0e9; 1.5e9", "-2.6e9; 1.3e9"),
}
ORDER = ("DP", "IBP", "DP-IBP", "IBP-IBP", "noisy-or")


class Begun(NamedTuple):
    """A start of chains of features."""

    active: np.ndarray
    values: np.ndarray
    numbers: dict

    def draw(self, key):
        return self


def tables(arguments):
    """Data, their likelihood."""
    share = arguments.share

    def scaled(values):
        return (values - values.min(axis=0)) / np.maximum(values.std(axis=0), 1e-9)

    real = ExponentialGaussian()
    return {
        "UN": (scaled(sets.menus(155, 15, 15, 6, arguments.seed)), real),
        "jokes": (scaled(sets.ratings(500 // share, seed=arguments.seed)), real),
        "genes": (scaled(sets.genes(arguments)[::share, ::share]), real),
        "robot": (sets.robot_tags(750 // share, seed=arguments.seed), Detection()),
        "India": (scaled(sets.menus(398 // share, 14, 10, 6, arguments.seed + 1)), real),
    }


def predicted(draws, values, gaps, likelihood):
    """Mean log density and mean squared error of hidden entries, of draws (active, values, numbers)."""
    logs, mean, number = -np.inf, 0.0, 0
    with jax.enable_x64(True):
        for active, own, numbers in draws:
            total = active @ own
            logs = np.logaddexp(logs, np.asarray(likelihood.log_entry(values, total, numbers))[gaps])
            mean = mean + np.asarray(likelihood.mean_entry(total, numbers))[gaps]
            number += 1
    return (logs - np.log(number)).mean(), np.mean((mean / number - values[gaps]) ** 2)


def by_features(values, gaps, likelihood, start, arguments, sweeps, last):
    """The Indian buffet process alone, from the features of a state of categories."""
    begun = as_features(start)
    used = begun.active.any(axis=0)
    start = Begun(begun.active[:, used], begun.values[used], begun.numbers)
    found = common.sample(
        values, arguments.seed, sweeps, last, likelihood, Law(), given_rows, chains=1, held_out=gaps, start=start
    )
    return [found.score, found.error, found.cpu, found.found["number_of_features"].mean(), np.nan]


def by_categories(values, gaps, likelihood, law, start, arguments, sweeps, last):
    """One of the priors of categories: numbers of the table, and the last state."""
    cpu = harness.cpu_seconds()
    sampler = Correlated(Rows(np.where(gaps, 0.0, values), ~gaps), likelihood, law, start, keep=("active", "values"))
    chains = run(sampler.kernel(), jax.random.key(arguments.seed), last, chains=1, warmup=sweeps - last)
    cpu = harness.cpu_seconds() - cpu
    names = list(chains.states[0].numbers)
    numbers = [{name: chains[name][0, draw] for name in names} for draw in range(last)]
    draws = zip(chains["active"][0], chains["values"][0], numbers, strict=True)
    scores = predicted(draws, values, gaps, likelihood)
    counts = [chains[f"number_of_{what}"].mean() for what in ("features", "categories")]
    return [*scores, cpu, *counts], chains.states[0]


def compared(report, arguments, sweeps):
    """The columns of both tables, a table for each data set."""
    last = min(50, sweeps // 2)
    note = (
        f"{sweeps} sweeps of one chain, the last {last} for predictions; ten entries of each column hidden. Mean log "
        "density in nats and mean squared error of a hidden entry; CPU seconds with compilations; features and "
        "categories. Last column: the thesis' predictive likelihood and L2 error, of three chains of 1000 sweeps."
    )
    columns = ("", "log density", "error", "CPU s", "features", "categories", "thesis")
    every = tables(arguments)
    for name in arguments.sets:
        values, likelihood = every[name]
        given = values, common.hidden(values.shape, 10.0 / len(values), arguments.seed), likelihood
        states, found = {None: None}, {}
        for model, (law, before) in LAWS.items():
            found[model], states[model] = by_categories(*given, law, states[before], arguments, sweeps, last)
        found["IBP"] = by_features(*given, states["DP"], arguments, sweeps, last)
        lines = [
            [model, *map(common.shown, found[model]), theirs] for model, theirs in zip(ORDER, THESIS[name], strict=True)
        ]
        report.table(f"{name}, {' x '.join(map(str, values.shape))}", note, columns, lines, found)


def main():
    parser = common.options(__doc__.splitlines()[0])
    parser.add_argument("--sweeps", type=int, default=60, help="of each chain; the thesis has 1000")
    parser.add_argument("--share", type=int, default=5, help="one row of so many of the larger data sets; 1 for all")
    parser.add_argument("--sets", nargs="*", default=["robot"], choices=sorted(THESIS))
    arguments = parser.parse_args()
    sweeps = 6 if arguments.quick else arguments.sweeps
    report = common.report("correlated", arguments, sweeps=sweeps, share=arguments.share)
    compared(report, arguments, sweeps)


if __name__ == "__main__":
    main()
