"""Blocks that occur together, figures 7.4 to 7.7 of the thesis on correlated features, and how slowly features grow.

Images of 6 x 6 with four blocks in nine combinations, the empty one among them, and noise of 0.5; values of features
that are not negative, and all numbers learned under vague gamma priors. The thesis finds four features and nine
categories in 700 images by the DP-IBP, and by the noisy-or of categories the same with replicas, both numbers too high.
Those of the DP-IBP start at twelve clusters of k-means with a feature each, others one from another as in the thesis'
tables: IBP-IBP from the DP-IBP, the noisy-or from the IBP-IBP.

What data tell is how many menus differ. Categories of one menu are alike to them, and a Dirichlet process has some
more, so that nine categories are not what it finds: how many there are is known without a chain, given the nine menus.
"""

import common

# isort: split
import harness
import jax
import numpy as np
import sets
from scipy.special import gammaln
from sklearn.cluster import KMeans

from cavity.engine.mcmc.run import run
from cavity.models.buffet.correlated import Correlated, DpIbp, IbpIbp, NoisyOrIbp, growth, of_partition
from cavity.models.buffet.likelihoods import ExponentialGaussian
from cavity.models.buffet.likelihoods.contract import Rows

VAGUE = (1.0, 1.0)
LAWS = {
    "DP-IBP": DpIbp(VAGUE, VAGUE),
    "DP-IBP, concentration 0.1": DpIbp(0.1, VAGUE),
    "IBP-IBP": IbpIbp(VAGUE, VAGUE),
    "noisy-or": NoisyOrIbp(VAGUE, VAGUE, (1.0, 9.0)),
}
GROWN = {"DP-IBP": DpIbp(2.0, 2.0), "IBP-IBP": IbpIbp(2.0, 2.0)}
NINE = (0, 1, 2, 4, 8, 3, 6, 12, 15)  # combinations of four blocks, as binary numbers
THESIS = {
    "DP-IBP": "4 and 9",
    "DP-IBP, concentration 0.1": "4 and 9",
    "IBP-IBP": "-",
    "noisy-or": "more than 4 and 9, replicas",
}


def histogram(numbers):
    """How often each number was found, as `number: share`."""
    found, counts = np.unique(numbers.astype(int), return_counts=True)
    return ", ".join(f"{number}: {share:.2f}" for number, share in zip(found, counts / numbers.size, strict=True))


def twins(law, has, random, steps=20_000):
    """Draws of the number of categories given which rows have which features.

    Of n rows of one menu there are as many partitions into l categories, with their weights under the restaurant, as
    the Stirling number of the first kind says, and the buffet has its law of menus. Metropolis steps have one category
    more or fewer of one menu, then another concentration where that is learned; the mass is drawn given these.
    """
    menus, rows = np.unique(has, axis=0, return_counts=True)
    stirling, harmonics = [log_stirling(each) for each in rows], np.append(0.0, np.cumsum(1.0 / np.arange(1, 1000)))
    learned = isinstance(law.concentration, tuple)
    number, mass, z, found = np.ones(len(menus), int), 1.0, 0.0 if learned else np.log(law.concentration), []

    def of_menus(number):
        every, owners = number.sum(), menus.T @ number
        logs = sum(each[own] for each, own in zip(stirling, number, strict=True)) + every * z - mass * harmonics[every]
        return logs + np.sum(gammaln(owners) + gammaln(every - owners + 1.0) - gammaln(every + 1.0))

    def of_concentration(z):
        (shape, rate), c = law.concentration, np.exp(z)
        return (number.sum() + shape) * z - rate * c + gammaln(c) - gammaln(c + len(has))

    for _ in range(steps):
        other = number.copy()
        other[random.integers(len(menus))] += random.choice([-1, 1])
        if other.min() > 0 and np.log(random.random()) < of_menus(other) - of_menus(number):
            number = other
        mass = random.gamma(law.mass[0] + menus.shape[1]) / (law.mass[1] + harmonics[number.sum()])
        another = z + 0.7 * random.normal()
        if learned and np.log(random.random()) < of_concentration(another) - of_concentration(z):
            z = another
        found.append(number.sum())
    return np.array(found[steps // 10 :])


def log_stirling(rows, most=80):
    """(most + 1,) logarithms of the unsigned Stirling numbers of the first kind: 0, 1, ... cycles of so many rows."""
    logs = np.full(most + 1, -np.inf)
    logs[0] = 0.0
    for i in range(rows):
        logs = np.logaddexp(np.append(-np.inf, logs[:-1]), logs + (np.log(i) if i else -np.inf))
    return logs


def demo(report, arguments, images, sweeps):
    """Histograms of features, menus and categories from the last half, and how well blocks and images are found."""
    values, has = sets.images(images, arguments.seed, NINE)
    rows, blocks = Rows(values, np.ones(values.shape, bool)), common.blocks()
    likelihood = ExponentialGaussian(noise_precision=VAGUE, rate=VAGUE)
    labels = KMeans(12, n_init=3, random_state=arguments.seed).fit_predict(values)
    clusters = start = of_partition(labels, rows, likelihood, jax.random.key(arguments.seed))
    half, lines, measured = sweeps // 2, [], {}
    for name in arguments.models:
        law = LAWS[name]
        begin = clusters if isinstance(law, DpIbp) else start
        sampler = Correlated(rows, likelihood, law, start=begin, keep=("values", "fit"))
        cpu, key = harness.cpu_seconds(), jax.random.key(arguments.seed)
        chains = run(sampler.kernel(), key, half, chains=arguments.chains, warmup=sweeps - half)
        cpu, start = harness.cpu_seconds() - cpu, chains.states[0]
        error = np.sqrt(np.mean((chains["fit"].mean(axis=(0, 1)) - has @ blocks) ** 2))
        nearest = max(np.sqrt(np.mean((start.values - block) ** 2, axis=1)).min() for block in blocks)
        counts = [histogram(chains[f"number_of_{what}"]) for what in ("features", "menus")]
        categories = [f"{chains['number_of_categories'].mean():.1f}", "-"]
        if isinstance(law, DpIbp):
            categories[1] = f"{twins(law, has, np.random.default_rng(arguments.seed)).mean():.1f}"
        found = [error, nearest, np.mean(chains["noise_precision"] ** -0.5), cpu]
        lines.append([name, *counts, *categories, *map(common.shown, found), THESIS[name]])
        measured[name] = [*counts, *categories, *found]
    note = (
        f"{images} images, {arguments.chains} chains of {sweeps} sweeps, the last half; the thesis has 700 images and "
        "three chains of 1000. Share of the draws with each number of features and of menus that differ; mean number "
        "of categories, and what it is given the nine menus, without chains; error of the mean image, and of the "
        "feature nearest to the block that is found worst; noise; CPU seconds with compilations."
    )
    columns = ("", "features", "menus", "categories", "given menus", "image", "worst block", "noise", "CPU s", "thesis")
    report.table("Blocks (figures 7.4 to 7.7)", note, columns, lines, measured)


def growing(report, arguments):
    """Categories and features for more and more rows, and the line in log log rows nearest to these."""
    lines, sizes = [], (10, 100, 1000, 10_000) if arguments.quick else (10, 100, 1000, 10_000, 100_000)
    slopes = []
    for name, law in GROWN.items():
        found = growth(law, sizes, 500, jax.random.key(arguments.seed))
        doubly = np.log(np.log(found.rows))
        slope, level = np.polyfit(doubly, found.features, 1)
        slopes.append(f"{slope:.2f} log log N + {level:.2f} ({name})")
        for rows, line, *numbers in zip(found.rows, level + slope * doubly, *found[1:], strict=True):
            lines.append([f"{name}, {rows} rows", *(f"{number:.3f}" for number in (*numbers, line))])
    found = {line[0]: line[1:] for line in lines}
    note = (
        "Concentration or mass of categories 2, mass of features 2: expected categories, features and their standard "
        "error over 500 draws, mass (1 + log(1 + categories)), which features are below on average, and the line "
        f"nearest to the features of N rows: {', '.join(slopes)}. The thesis: of the order of the logarithm of the "
        "logarithm of the rows."
    )
    columns = ("", "categories", "features", "error", "bound", "line")
    report.table("Growth of the number of features", note, columns, lines, found)


def main():
    parser = common.options(__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=700, help="the thesis has 700")
    parser.add_argument("--sweeps", type=int, default=400, help="of each chain; the thesis has 1000")
    parser.add_argument("--chains", type=int, default=3, help="the thesis has 3")
    parser.add_argument("--models", nargs="*", default=list(LAWS)[:2], choices=sorted(LAWS))
    arguments = parser.parse_args()
    images, sweeps = (60, 10) if arguments.quick else (arguments.images, arguments.sweeps)
    report = common.report("blocks", arguments, images=images, sweeps=sweeps, chains=arguments.chains)
    growing(report, arguments)
    demo(report, arguments, images, sweeps)


if __name__ == "__main__":
    main()
