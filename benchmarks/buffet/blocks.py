"""Blocks that occur together, figures 7.4 to 7.7 of the thesis on correlated features, and how slowly features grow.

Images of 6 x 6 with four blocks in nine combinations, the empty one among them, and noise of 0.5; all numbers are
learned under vague gamma priors. The thesis finds four features and nine categories in 700 images by the DP-IBP, and by
the noisy-or of categories the same with replicas, both numbers too high. Chains start one from another, as in the
thesis' tables: DP-IBP from categories alone, IBP-IBP and the noisy-or. These begin at twelve clusters of k-means: from
draws of the prior DP-IBP stays without features. The likelihood is linear and Gaussian, the thesis' exponential.
"""

import common

# isort: split
import harness
import jax
import numpy as np
import sets
from sklearn.cluster import KMeans

from cavity.engine.mcmc.run import run
from cavity.models.buffet.correlated import Correlated, DpIbp, IbpIbp, NoisyOrIbp, growth, of_partition
from cavity.models.buffet.likelihoods import LinearGaussian
from cavity.models.buffet.likelihoods.contract import Rows

VAGUE = (1.0, 1.0)
LAWS = {
    "DP-IBP": DpIbp(VAGUE, VAGUE),
    "IBP-IBP": IbpIbp(VAGUE, VAGUE),
    "noisy-or": NoisyOrIbp(VAGUE, VAGUE, (1.0, 9.0)),
}
GROWN = {"DP-IBP": DpIbp(2.0, 2.0), "IBP-IBP": IbpIbp(2.0, 2.0)}
NINE = (0, 1, 2, 4, 8, 3, 6, 12, 15)  # combinations of four blocks, as binary numbers
THESIS = {"DP-IBP": "4 and 9", "IBP-IBP": "-", "noisy-or": "more than 4 and 9, replicas"}


def histogram(numbers):
    """How often each number was found, as `number: share`."""
    found, counts = np.unique(numbers.astype(int), return_counts=True)
    return ", ".join(f"{number}: {share:.2f}" for number, share in zip(found, counts / numbers.size, strict=True))


def demo(report, arguments, images, sweeps):
    """Histograms of features and categories from the last half, and how well blocks and images are found."""
    values, has = sets.images(images, arguments.seed, NINE)
    rows, blocks = Rows(values, np.ones(values.shape, bool)), common.blocks()
    likelihood = LinearGaussian(noise_precision=VAGUE, value_precision=VAGUE)
    labels = KMeans(12, n_init=3, random_state=arguments.seed).fit_predict(values)
    start = of_partition(labels, rows, likelihood, jax.random.key(arguments.seed))
    half, lines, measured = sweeps // 2, [], {}
    for name in arguments.models:
        sampler = Correlated(rows, likelihood, LAWS[name], start=start, keep=("values", "fit"))
        cpu, key = harness.cpu_seconds(), jax.random.key(arguments.seed)
        chains = run(sampler.kernel(), key, half, chains=arguments.chains, warmup=sweeps - half)
        cpu, start = harness.cpu_seconds() - cpu, chains.states[0]
        error = np.sqrt(np.mean((chains["fit"].mean(axis=(0, 1)) - has @ blocks) ** 2))
        nearest = max(np.sqrt(np.mean((start.values - block) ** 2, axis=1)).min() for block in blocks)
        counts = [histogram(chains[f"number_of_{what}"]) for what in ("features", "categories")]
        found = [error, nearest, np.mean(chains["noise_precision"] ** -0.5), cpu]
        lines.append([name, *counts, *map(common.shown, found), THESIS[name]])
        measured[name] = [*counts, *found]
    note = (
        f"{images} images, {arguments.chains} chains of {sweeps} sweeps, the last half; the thesis has 700 images and "
        "three chains of 1000. Share of the draws with each number of features and of categories; error of the mean "
        "image, and of the feature nearest to the block that is found worst; noise; CPU seconds with compilations."
    )
    columns = ("", "features", "categories", "image", "worst block", "noise", "CPU s", "thesis")
    report.table("Blocks (figures 7.4 to 7.7)", note, columns, lines, measured)


def growing(report, arguments):
    """Categories and features for more and more rows."""
    lines, sizes = [], (10, 100, 1000, 10_000) if arguments.quick else (10, 100, 1000, 10_000, 100_000)
    for name, law in GROWN.items():
        found = growth(law, sizes, 500, jax.random.key(arguments.seed))
        for rows, *numbers in zip(*found, strict=True):
            lines.append([f"{name}, {rows} rows", *(f"{number:.3f}" for number in numbers)])
    found = {line[0]: line[1:] for line in lines}
    note = (
        "Concentration or mass of categories 2, mass of features 2: expected categories, features and their standard "
        "error over 500 draws, and mass (1 + log(1 + categories)), which features are below on average. The thesis: of "
        "the order of the logarithm of the logarithm of the rows."
    )
    columns = ("", "categories", "features", "error", "bound")
    report.table("Growth of the number of features", note, columns, lines, found)


def main():
    parser = common.options(__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=200, help="the thesis has 700")
    parser.add_argument("--sweeps", type=int, default=200, help="of each chain; the thesis has 1000")
    parser.add_argument("--chains", type=int, default=1, help="the thesis has 3")
    parser.add_argument("--models", nargs="*", default=["DP-IBP"], choices=sorted(LAWS))
    arguments = parser.parse_args()
    images, sweeps = (60, 10) if arguments.quick else (arguments.images, arguments.sweeps)
    report = common.report("blocks", arguments, images=images, sweeps=sweeps, chains=arguments.chains)
    growing(report, arguments)
    demo(report, arguments, images, sweeps)


if __name__ == "__main__":
    main()
