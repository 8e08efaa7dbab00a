"""Blocks that occur together (D-48; thesis section 7.2), and how slowly correlated features grow (D-45, D-46).

700 images of 6 x 6 with four blocks in nine combinations, the empty one among them, and noise of 0.5; three chains of
1000 sweeps, all numbers learned under vague gamma priors. The thesis finds four features and nine categories by the
DP-IBP, histograms from the last half of each chain; and by the noisy-or of categories the same with replicas, both
numbers too high. Chains start one from another: a partition, then DP-IBP, IBP-IBP and the noisy-or, as in the thesis'
section 7.3. The likelihood is linear and Gaussian; the thesis' values of features are exponential.

The table of growth has `mass = 2` features for a category on average.

    python benchmarks/buffet/blocks.py [--images 700] [--sweeps 1000] [--chains 3] [--models dp] [--seed 0]
"""

import argparse
import itertools
import time

import jax
import numpy as np

from cavity.engine.mcmc.run import run
from cavity.models.buffet.correlated import Correlated, DpIbp, IbpIbp, NoisyOrIbp, growth
from cavity.models.buffet.likelihoods import LinearGaussian
from cavity.models.buffet.likelihoods.contract import Rows

VAGUE = (1.0, 1.0)
LAWS = {"dp": DpIbp(VAGUE, VAGUE), "buffets": IbpIbp(VAGUE, VAGUE), "noisy": NoisyOrIbp(VAGUE, VAGUE, (1.0, 9.0))}
GROWN = {"DP-IBP": DpIbp(2.0, 2.0), "IBP-IBP": IbpIbp(2.0, 2.0)}
NINE = (0, 1, 2, 4, 8, 3, 6, 12, 15)  # combinations of four blocks, as binary numbers
SHAPES = (
    ((0, 1), (1, 0), (1, 1), (1, 2), (2, 1)),
    ((0, 3), (0, 4), (0, 5), (1, 3), (1, 5), (2, 3), (2, 4), (2, 5)),
    ((3, 0), (4, 0), (4, 1), (5, 0), (5, 1), (5, 2)),
    ((3, 3), (3, 4), (3, 5), (4, 4), (5, 4)),
)  # row and column of the pixels of each block


def blocks():
    """(4, 36) of zeros and ones."""
    found = np.zeros((4, 6, 6))
    for number, shape in enumerate(SHAPES):
        found[(number, *zip(*shape, strict=True))] = 1.0
    return found.reshape(4, 36)


def images(count, seed):
    """Rows, and (images, 4) which blocks each has."""
    random = np.random.default_rng(seed)
    every = np.array(list(itertools.product([0, 1], repeat=4)))
    has = every[random.choice(NINE, count)]
    values = has @ blocks() + 0.5 * random.normal(size=(count, 36))
    return Rows(values, np.ones(values.shape, bool)), has


def histogram(numbers):
    """How often each number was found, as `number: share`."""
    found, counts = np.unique(numbers, return_counts=True)
    return ", ".join(f"{number}: {share:.3f}" for number, share in zip(found, counts / numbers.size, strict=True))


def demo(names, arguments):
    """Histograms of features and categories from the last half, and how well blocks and images are found."""
    rows, has = images(arguments.images, arguments.seed)
    likelihood = LinearGaussian(noise_precision=VAGUE, value_precision=VAGUE)
    start, half = None, arguments.sweeps // 2
    for name in names:
        sampler = Correlated(rows, likelihood, LAWS[name], start=start, keep=("values", "fit"))
        began = time.perf_counter()
        key = jax.random.key(arguments.seed)
        chains = run(sampler.kernel(), key, half, chains=arguments.chains, warmup=arguments.sweeps - half)
        seconds = time.perf_counter() - began
        print(f"\n{name}: {arguments.chains} chains of {arguments.sweeps} sweeps, {seconds:.0f} s")
        for what in ("features", "categories"):
            print(f"  {what}: {histogram(chains[f'number_of_{what}'])}")
        error = np.sqrt(np.mean((chains["fit"].mean(axis=(0, 1)) - has @ blocks()) ** 2))
        last = chains.states[0].values
        nearest = [np.sqrt(np.mean((last - block) ** 2, axis=1)).min() for block in blocks()]
        print(f"  error of the mean image: {error:.3f}, of the feature nearest to each block: {np.round(nearest, 3)}")
        print(f"  noise: {np.mean(chains['noise_precision'] ** -0.5):.3f}")
        start = chains.states[0]


def table_of_growth(seed):
    """Categories and features for more and more rows."""
    for name, law in GROWN.items():
        found = growth(law, (10, 100, 1000, 10_000, 100_000), 2000, jax.random.key(seed))
        print(f"\n{name}: rows, categories, features (standard error), bound")
        for line in zip(*found, strict=True):
            print("  {:7d} {:8.2f} {:8.3f} ({:.3f}) {:8.2f}".format(*line))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=700)
    parser.add_argument("--sweeps", type=int, default=1000)
    parser.add_argument("--chains", type=int, default=3)
    parser.add_argument("--models", nargs="*", default=["dp"], choices=sorted(LAWS))
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    table_of_growth(arguments.seed)
    demo(arguments.models, arguments)


if __name__ == "__main__":
    main()
