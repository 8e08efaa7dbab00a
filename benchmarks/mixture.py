"""Mixture of 10 Gaussians in 5 dimensions, time per iteration: scikit-learn, BayesPy, NumPy (floor) and cavity.

scikit-learn ties mean and precision in one Gauss-Wishart, as cavity does where it says joint; the others keep them
apart; the work over the rows is equal. All by VMP, but for cavity's EP of the joint model.
"""

import harness

# isort: split
import functools
import importlib.util
import warnings

import numpy as np
from scipy.special import digamma

COMPONENTS, DIMENSION = 10, 5


def data(rows, seed=5):
    rng = np.random.default_rng(seed)
    centre = rng.normal(scale=4.0, size=(COMPONENTS, DIMENSION))
    mixing = rng.normal(scale=0.5, size=(COMPONENTS, DIMENSION, DIMENSION)) + np.eye(DIMENSION)
    z = rng.integers(COMPONENTS, size=rows)
    return centre[z] + np.einsum("nij,nj->ni", mixing[z], rng.normal(size=(rows, DIMENSION)))


def sklearn_run(x, iterations):
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import BayesianGaussianMixture

    kind = "dirichlet_distribution"
    estimator = BayesianGaussianMixture(
        n_components=COMPONENTS,
        weight_concentration_prior_type=kind,
        init_params="random",
        tol=0.0,
        max_iter=iterations,
    )

    def run():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            estimator.fit(x)
        return int(estimator.n_iter_)

    return run


def bayespy_run(x, iterations):
    from bayespy.inference import VB
    from bayespy.nodes import Categorical, Dirichlet, Gaussian, Mixture, Wishart

    def run():
        weights = Dirichlet(np.ones(COMPONENTS))
        z = Categorical(weights, plates=(len(x),))
        mean = Gaussian(np.zeros(DIMENSION), 0.1 * np.eye(DIMENSION), plates=(COMPONENTS,))
        precision = Wishart(DIMENSION + 2, DIMENSION * np.eye(DIMENSION), plates=(COMPONENTS,))
        y = Mixture(z, Gaussian, mean, precision)
        z.initialize_from_random()
        y.observe(x)
        VB(y, mean, precision, z, weights).update(repeat=iterations, tol=0.0, verbose=False)
        return iterations

    return run


def features(x):
    """Columns 1, x and x x' (upper triangle): with them responsibilities and statistics are two matrix products."""
    upper = np.triu_indices(DIMENSION)
    return np.concatenate([np.ones((len(x), 1)), x, x[:, upper[0]] * x[:, upper[1]]], axis=1)


def floor_run(x, iterations):
    """VMP in NumPy: q(mean), q(precision) and q(weights) from expected statistics, all rows in two matrix products."""
    upper = np.triu_indices(DIMENSION)
    twice = np.where(upper[0] == upper[1], 1.0, 2.0)
    eye = np.eye(DIMENSION)

    def parameters(statistics, mean_precision):
        count, first = statistics[:, 0], statistics[:, 1 : 1 + DIMENSION]
        second = np.empty((COMPONENTS, DIMENSION, DIMENSION))
        second[:, upper[0], upper[1]] = second[:, upper[1], upper[0]] = statistics[:, 1 + DIMENSION :]
        covariance = np.linalg.inv(0.1 * eye + count[:, None, None] * mean_precision)
        mean = np.einsum("kij,kjl,kl->ki", covariance, mean_precision, first)
        cross = first[:, :, None] * mean[:, None, :]
        outer = covariance + mean[:, :, None] * mean[:, None, :]
        scatter = second - cross - cross.transpose(0, 2, 1) + count[:, None, None] * outer
        dof = DIMENSION + 2 + count
        inverse = DIMENSION * eye + scatter
        precision = dof[:, None, None] * np.linalg.inv(inverse)
        log_det = digamma(0.5 * (dof[:, None] - np.arange(DIMENSION))).sum(1) + DIMENSION * np.log(2.0)
        log_det -= np.linalg.slogdet(inverse)[1]
        log_weight = digamma(1.0 + count) - digamma((1.0 + count).sum())
        constant = log_weight + 0.5 * log_det - 0.5 * np.einsum("kij,kij->k", precision, outer)
        linear = np.einsum("kij,kj->ki", precision, mean)
        quadratic = -0.5 * twice * precision[:, upper[0], upper[1]]
        return np.concatenate([constant[:, None], linear, quadratic], axis=1), precision

    def run():
        table = features(x)
        rng = np.random.default_rng(0)
        weight = rng.dirichlet(np.ones(COMPONENTS), size=len(x))
        precision = np.tile(eye, (COMPONENTS, 1, 1))
        for _ in range(iterations):
            natural, precision = parameters(weight.T @ table, precision)
            logits = table @ natural.T
            logits -= logits.max(1, keepdims=True)
            np.exp(logits, out=logits)
            weight = logits / logits.sum(1, keepdims=True)
        return iterations

    return run


def model(cv, joint=False):
    m = cv.Model("mixture")
    k, n = m.plate("component", COMPONENTS), m.plate("n")
    weights = m.random("weights", cv.dirichlet(np.ones(COMPONENTS)))
    scale = np.eye(DIMENSION) / DIMENSION
    precision = m.random("precision", cv.wishart(dof=DIMENSION + 2.0, scale=scale), plates=k)
    spread = {"precision": 0.1 * precision} if joint else {"covariance": 10.0 * np.eye(DIMENSION)}
    mean = m.random("mean", cv.vector_gaussian(np.zeros(DIMENSION), **spread), plates=k)
    z = m.random("z", cv.categorical(weights), plates=n)
    m.random("x", cv.vector_gaussian(mean[z], precision=precision[z]))
    return m


def cavity_run(x, iterations, joint=False, **options):
    """The time of a whole run over its iterations: what `program` adds around them counts too."""
    import cavity as cv

    program = cv.compile(model(cv, joint), observed=["x"], sizes={"n": len(x)}, max_iterations=iterations, **options)

    def run():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", cv.CavityWarning)  # it is stopped on its way
            return int(program({"x": x}).iterations)

    return run


def joint_run(x, iterations):
    return cavity_run(x, iterations, joint=True)


def ep_run(x, iterations):
    return cavity_run(x, min(iterations, 10), joint=True, method="ep")


def main():
    parser = harness.options(__doc__)
    parser.set_defaults(repeats=3)
    parser.add_argument("--iterations", type=int, default=30)
    parser.add_argument("--rows", type=int, nargs="*", default=[10_000, 100_000])
    parser.add_argument("--long", action="store_true", help="a million rows too")
    arguments = parser.parse_args()
    report = harness.Report("mixture", **vars(arguments))
    for rows in arguments.rows + [1_000_000] * arguments.long:
        x = data(rows)
        iterations = arguments.iterations if rows <= 10_000 else 10
        runs = {"sklearn": sklearn_run, "NumPy": floor_run}
        if rows <= 10_000 and importlib.util.find_spec("bayespy"):
            runs["BayesPy"] = bayespy_run
        if not arguments.peers:
            runs |= {"cavity": cavity_run, "cavity, joint": joint_run}
            runs |= {"cavity, EP": ep_run} if rows <= 10_000 else {}
        runs = {name: functools.partial(make, x, iterations)() for name, make in runs.items()}
        report.add(harness.compare(f"Mixture, {rows} rows, per iteration", runs, arguments.repeats, arguments.budget))


if __name__ == "__main__":
    main()
