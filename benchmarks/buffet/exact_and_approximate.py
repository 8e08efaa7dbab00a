"""What shards that do not see each other's changes are off by: hyperparameters beside the exact sampler's, table 5.1.

Block images in five shards: mass, noise and size of features under the exact sampler of all rows, by approximate
shards, by a few features at a time, and by exact moves of shards, which accept or refuse what seeded sweeps propose
for 1, 5 or 10 rows of each. Bias: mean less that of the exact sampler, in its standard deviations, with the error of
the difference over repeats; and the largest distance between the cumulative distributions (figures 5.3 to 5.5).
"""

import common

# isort: split
import time

import jax
import numpy as np
import sets
from scipy.stats import ks_2samp

from cavity.models.buffet.chains import sample_features
from cavity.models.buffet.likelihoods import LinearGaussian
from cavity.models.buffet.parallel import Costs, SeededShards, SomeFeatures, sample_in_turns
from cavity.models.buffet.samplers.accelerated import accelerated

NAMES = ("mass", "noise_precision", "value_precision", "number_of_features")
SHARDS, INNER = 5, 5
THESIS = {"approximate": "179 s", "some features": "120 s", "moves of 1": ".1106", "moves of 5": ".0121",
          "moves of 10": ".0062"}  # fmt: skip


class After:
    """Chains begin where a run of one shard had settled: what is compared is where they stay."""

    def __init__(self, found, values):
        self.active, self.numbers = found.sites[0].active, found.known.numbers
        z = self.active.astype(float)
        precision = z.T @ z + np.eye(z.shape[1]) * self.numbers["value_precision"] / self.numbers["noise_precision"]
        self.values = np.linalg.solve(precision, z.T @ values)

    def draw(self, key):
        return self.active, self.values, self.numbers


def by_features(arguments, values, sweep, seed, start):
    """Draws of the last three quarters, and CPU seconds."""
    began, sweeps = time.process_time(), INNER * arguments.outer
    found = sample_features(
        values, jax.random.key(seed), sweeps - sweeps // 4, LinearGaussian(), sweep=sweep, chains=1, warmup=sweeps // 4,
        keep="summaries", start=After(start, values), progress=False,
    )  # fmt: skip
    return {name: found[name][0].astype(float) for name in NAMES}, time.process_time() - began


def by_shards(arguments, values, seed, start):
    """The same of approximate shards, all of which wait for all."""
    began, outer, parts = time.process_time(), arguments.outer, np.array_split(values, SHARDS)
    asked = {"inner": INNER, "window": 0.0, "costs": Costs(), "start": start}
    found = sample_in_turns(parts, jax.random.key(seed), outer - outer // 4, warmup=outer // 4, **asked)
    return {name: found[name].astype(float) for name in NAMES}, time.process_time() - began


def methods(arguments, seed):
    """Draws and seconds by name, of one data set."""
    values, _ = sets.images(arguments.rows, seed)
    values = values - values.mean(axis=0)
    asked = {"inner": INNER, "window": 0.0, "costs": Costs()}
    start = sample_in_turns([values], jax.random.key(seed), 1, warmup=arguments.settle, **asked)
    found = {
        "exact": by_features(arguments, values, accelerated, seed, start),
        "exact, other seeds": by_features(arguments, values, accelerated, seed + 1000, start),
        "approximate": by_shards(arguments, values, seed, start),
        "some features": by_features(arguments, values, SomeFeatures(0.5), seed, start),
    }
    for rows in arguments.changed:
        sweep = SeededShards(shards=SHARDS, changed=rows, moves=arguments.moves)
        found[f"moves of {rows}"] = by_features(arguments, values, sweep, seed, start)
    return found


def main():
    parser = common.options(__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1000, help="the thesis has 1000")
    parser.add_argument("--settle", type=int, default=60, help="rounds of 5 sweeps of the run that all go on from")
    parser.add_argument("--outer", type=int, default=200, help="rounds of 5 sweeps; the thesis has 500 from nothing")
    parser.add_argument("--repeats", type=int, default=5, help="data sets; the thesis has 25")
    parser.add_argument("--changed", type=int, nargs="*", default=[1, 5, 10])
    parser.add_argument("--moves", type=int, default=5, help="exact moves of a sweep")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.rows, arguments.outer, arguments.repeats, arguments.changed = 60, 16, 2, [1]
    settings = {name: getattr(arguments, name) for name in ("rows", "settle", "outer", "repeats", "moves")}
    report = common.report("exact_and_approximate", arguments, **settings)
    every = [methods(arguments, arguments.seed + repeat) for repeat in range(arguments.repeats)]
    lines, found = [], {}
    for method in every[0]:
        cells = [compared(method, name, every) for name in NAMES]
        seconds = [each[method][1] for each in every]
        lines.append([method, *cells, common.shown(seconds[0]), common.shown(min(seconds)), THESIS.get(method, "-")])
        means = {name: [float(each[method][0][name].mean()) for each in every] for name in NAMES}
        found[method] = {"cells": cells, "seconds": seconds, "means": means}
    note = (
        f"{arguments.rows} images, {SHARDS} shards, {arguments.outer} rounds of {INNER} sweeps or as many sweeps, from "
        f"a run of one shard that had settled, the last three quarters; means over {arguments.repeats} data sets. Each "
        "cell: bias in standard deviations of the exact sampler and its standard error; the largest distance of the "
        "distributions. CPU seconds of the first data set, with compilations, and the least. Last column: seconds of "
        "the thesis, or the share that its exact moves accept."
    )
    columns = ("", *NAMES, "first CPU s", "CPU s", "thesis")
    report.table("Exact and approximate (table 5.1)", note, columns, lines, found)


def compared(method, name, every):
    """Bias, its error and the distance of distributions, as text."""
    bias, apart = [], []
    for each in every:
        one, other = each["exact"][0][name], each[method][0][name]
        bias.append((other.mean() - one.mean()) / max(one.std(), 1e-12))
        apart.append(ks_2samp(one, other).statistic)
    error = np.std(bias, ddof=1) / np.sqrt(len(bias)) if len(bias) > 1 else np.nan
    return f"{np.mean(bias):+.2f} ({error:.2f}); {np.mean(apart):.2f}"


if __name__ == "__main__":
    main()
