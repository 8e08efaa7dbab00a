"""Shape and rate of a Gamma by NCVMP: the bound's maximum from two sums by SciPy (floor), and cavity, to convergence.

shape ~ Gamma(1, 1), rate ~ Gamma(1, 1), x_n ~ Gamma(shape, rate); 10,000 draws. Infer.NET's CPU time for 60 iterations,
after which it has not converged, was measured in a process of its own on a machine like ours and is quoted.
"""

import harness

# isort: split
import numpy as np
import reference_runs
import scipy.optimize
from scipy.special import digamma, gammaln

RUN = "infernet_gamma_shape"
INFER_NET_MS = 2101.0
INFER_NET_BOUND = -21471.956617263833
# Infer.NET's converged runs: mean and sd of shape and rate in `posterior_<name>.csv`.
CONVERGED = [f"gamma_N{n}_shape5" for n in (10, 25, 50, 100, 1000)]
CONVERGED += [f"gamma_N50_shape{shape}" for shape in (0.5, 1, 2, 10, 20)]


def data(draws, seed=0):
    found = reference_runs.column(RUN, f"gamma_N{draws}_shape5.csv")
    return np.random.default_rng(seed).gamma(5.0, 1.0, draws) if found is None else found


def expected(function, shape, rate, nodes=4001):
    """E function(s) under Gamma(shape, rate): the trapezoidal rule in v = log(s rate / shape), without cancellation."""
    width = 12.0 / np.sqrt(shape) + 3.0 / shape
    v = np.linspace(-width, width, nodes)
    weights = np.exp(shape * (v - np.expm1(v)))
    return weights @ function(np.exp(v) * shape / rate) / weights.sum()


def entropy(shape, rate):
    return shape - np.log(rate) + gammaln(shape) + (1.0 - shape) * digamma(shape)


def bound(n, sum_log, total, shape, rate):
    """The bound at q(shape) and q(rate), each a Gamma given as (shape, rate)."""
    (a, b), (c, d) = shape, rate
    mean, log_rate = a / b, digamma(c) - np.log(d)
    likelihood = n * (mean * log_rate - expected(gammaln, a, b)) + (mean - 1.0) * sum_log - c / d * total
    return likelihood - mean - c / d + entropy(a, b) + entropy(c, d)


def optimum(x):
    """q(shape), q(rate) and the maximum of the bound: q(rate) exactly, given q(shape) by BFGS in mean and size."""
    n, sum_log, total = len(x), np.log(x).sum(), x.sum()

    def parameters(u):
        a = np.exp(u[1]) * n
        mean = np.exp(u[0])
        return (a, a / mean), (1.0 + n * mean, 1.0 + total)

    def loss(u):
        return -bound(n, sum_log, total, *parameters(u)) / n

    start = 0.5 / (np.log(total / n) - sum_log / n)
    found = scipy.optimize.minimize(
        loss, np.log([start, start]), method="Nelder-Mead", options={"xatol": 1e-10, "fatol": 1e-16}
    )
    return *parameters(found.x), -n * found.fun


def moments(parameters):
    a, b = parameters
    return float(a / b), float(np.sqrt(a) / b)


def model(cv):
    m = cv.Model("gamma shape and rate")
    n = m.plate("n")
    shape = m.random("shape", cv.gamma(1.0, 1.0))
    rate = m.random("rate", cv.gamma(1.0, 1.0))
    m.random("x", cv.gamma(shape, rate), plates=n)
    return m


def distance(posterior, expected):
    """The largest difference of a mean or sd from ((mean, sd) of shape, of rate), in standard deviations."""
    found = [(float(posterior[name].mean), float(posterior[name].sd)) for name in ("shape", "rate")]
    pairs = zip(found, expected, strict=True)
    return max(max(abs(mean - e_mean), abs(sd - e_sd)) / e_sd for (mean, sd), (e_mean, e_sd) in pairs)


def against_runs(cv):
    """The largest distance, in sd, from Infer.NET's converged posteriors; None where there is no copy of them."""
    worst = None
    for name in CONVERGED:
        x, means, sds = (
            reference_runs.column(RUN, f"{name}.csv"),
            reference_runs.column(RUN, f"posterior_{name}.csv", 1),
            reference_runs.column(RUN, f"posterior_{name}.csv", 2),
        )
        if x is not None:
            found = cv.infer(model(cv), {"x": x}, method="vmp", tolerance=1e-9)
            worst = max(worst or 0.0, distance(found, list(zip(means, sds, strict=True))))
    return worst


def main():
    parser = harness.options(__doc__)
    parser.add_argument("--draws", type=int, default=10_000)
    arguments = parser.parse_args()
    report = harness.Report("gamma_shape", **vars(arguments))
    x = data(arguments.draws)
    shape, rate, best = optimum(x)
    facts = {
        "SciPy (shape, rate, bound)": (moments(shape), moments(rate), float(best)),
        "Infer.NET ms, bound (10,000 draws)": (INFER_NET_MS, INFER_NET_BOUND),
    }
    runs = {"SciPy, two sums": lambda: optimum(x)[0]}
    if not arguments.peers:
        import cavity as cv

        found = cv.infer(model(cv), {"x": x}, method="vmp")
        apart = distance(found, [moments(shape), moments(rate)])
        if not found.converged or abs(found.log_evidence - best) > 1e-6 or apart > 1e-4:
            raise SystemExit(f"cavity is {apart} sd from the optimum, bound {found.log_evidence}: {found.diagnosis}")
        facts["cavity, bound"] = found.log_evidence
        facts["cavity, sweeps"] = found.iterations
        facts["cavity from the optimum, sd"] = apart
        facts["cavity from Infer.NET's converged runs on smaller data, sd"] = against_runs(cv)

        program = cv.compile(model(cv), observed=["x"], method="vmp", sizes={"n": len(x)})

        def ours():
            program({"x": x})["shape"].sd  # noqa: B018

        runs["cavity"] = ours
    title = f"Gamma shape and rate, {len(x)} draws"
    report.add(harness.compare(title, runs, arguments.repeats, arguments.budget), **facts)


if __name__ == "__main__":
    main()
