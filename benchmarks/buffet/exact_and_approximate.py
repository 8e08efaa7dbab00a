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
from cavity.models.buffet.parallel import SeededShards, SomeFeatures, sample_in_shards
from cavity.models.buffet.samplers.accelerated import accelerated

NAMES = ("mass", "noise_precision", "value_precision", "number_of_features")
SHARDS = 5
THESIS = {"approximate": "179 s", "some features": "120 s", "moves of 1": ".1106", "moves of 5": ".0121",
          "moves of 10": ".0062"}  # fmt: skip


def by_features(values, sweep, sweeps, seed, start):
    """Draws of the last half, and CPU seconds."""
    began = time.process_time()
    found = sample_features(
        values, jax.random.key(seed), sweeps // 2, LinearGaussian(), sweep=sweep, chains=1, warmup=sweeps // 2,
        keep="summaries", start=start, progress=False,
    )  # fmt: skip
    return {name: found[name][0].astype(float) for name in NAMES}, time.process_time() - began


def by_shards(values, outer, seed):
    """The same of approximate shards."""
    began = time.process_time()
    parts = np.array_split(values, SHARDS)
    found = sample_in_shards(parts, jax.random.key(seed), outer // 2, inner=5, warmup=outer // 2, progress=False)
    return {name: found[name][0].astype(float) for name in NAMES}, time.process_time() - began


class Truth:
    """Chains begin at the features that made the images: what is compared is where they stay."""

    def __init__(self, has):
        self.has = has

    def draw(self, key):
        numbers = {"noise_precision": np.array(4.0), "value_precision": np.array(4.0)}
        return self.has, common.blocks() * 1.0, numbers


def methods(arguments, values, has, seed):
    """Draws and seconds by name."""
    outer, start = arguments.outer, Truth(has)
    found = {
        "exact": by_features(values, accelerated, 5 * outer, seed, start),
        "exact, other seeds": by_features(values, accelerated, 5 * outer, seed + 1000, start),
        "approximate": by_shards(values, outer, seed),
        "some features": by_features(values, SomeFeatures(0.5), 5 * outer, seed, start),
    }
    for rows in arguments.changed:
        sweep = SeededShards(shards=SHARDS, changed=rows)
        found[f"moves of {rows}"] = by_features(values, sweep, 5 * outer, seed, start)
    return found


def main():
    parser = common.options(__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1000, help="the thesis has 1000")
    parser.add_argument("--outer", type=int, default=100, help="rounds of 5 sweeps; the thesis has 500")
    parser.add_argument("--repeats", type=int, default=5, help="the thesis has 25")
    parser.add_argument("--changed", type=int, nargs="*", default=[1, 5, 10])
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.rows, arguments.outer, arguments.repeats, arguments.changed = 60, 16, 2, [1]
    settings = {"rows": arguments.rows, "outer": arguments.outer, "repeats": arguments.repeats}
    report = common.report("exact_and_approximate", arguments, **settings)
    every = []
    for repeat in range(arguments.repeats):
        values, has = sets.images(arguments.rows, arguments.seed + repeat)
        every.append(methods(arguments, values, has, arguments.seed + repeat))
    lines, found = [], {}
    for method in every[0]:
        cells = [compared(method, name, every) for name in NAMES]
        seconds = float(np.mean([each[method][1] for each in every]))
        lines.append([method, *cells, common.shown(seconds), THESIS.get(method, "-")])
        found[method] = {"cells": cells, "seconds": seconds}
    note = (
        f"{arguments.rows} images, {SHARDS} shards, {arguments.outer} rounds of 5 sweeps or as many sweeps, the last "
        f"half; means over {arguments.repeats} data sets. Each cell: bias in standard deviations of the exact "
        "sampler and its standard error; the largest distance of the distributions. CPU seconds with compilations. "
        "Last column: seconds of the thesis, or the share that its exact moves accept."
    )
    report.table("Exact and approximate (table 5.1)", note, ("", *NAMES, "CPU s", "thesis"), lines, found)


def compared(method, name, every):
    """Bias, its error and the distance of distributions, as text."""
    bias, apart = [], []
    for each in every:
        one, other = each["exact"][0][name], each[method][0][name]
        bias.append(
            (other.mean() - one.mean()) / max(one.std(), 1e-12) if one.std() > 0.0 else other.mean() - one.mean()
        )
        apart.append(ks_2samp(one, other).statistic)
    error = np.std(bias, ddof=1) / np.sqrt(len(bias)) if len(bias) > 1 else np.nan
    return f"{np.mean(bias):+.2f} ({error:.2f}); {np.mean(apart):.2f}"


if __name__ == "__main__":
    main()
