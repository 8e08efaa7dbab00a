"""The clutter problem by EP through a gate: textbook EP in NumPy (floor) and cavity, to convergence.

mean ~ N(0, 100), x_n ~ N(mean, 1) or N(0, 10) with equal odds; 2000 points. The exact posterior is a quadrature over
the mean. Infer.NET's CPU time to 1e-6 sd, measured in a process of its own on a machine like ours, is quoted.
"""

import harness

# isort: split
import math

import numpy as np
import reference_runs
from scipy.special import logsumexp

PRIOR, CLUTTER = 100.0, 10.0
TOLERANCE = 1e-6  # posterior standard deviations
INFER_NET_MS = {"sequential": 7.23, "parallel": 10.78}


def data(points, seed=0):
    found = reference_runs.column("infernet_clutter", f"clutter_N{points}.csv")
    if found is not None:
        return found
    rng = np.random.default_rng(seed)
    clean = rng.random(points) < 0.5
    return np.where(clean, rng.normal(2.0, 1.0, points), rng.normal(0.0, math.sqrt(CLUTTER), points))


def log_normal(x, mean, variance):
    return -0.5 * ((x - mean) ** 2 / variance + np.log(2.0 * np.pi * variance))


def exact(x, nodes=20_001):
    """Mean, standard deviation and log evidence by the trapezoidal rule on a grid around the bulk of the posterior."""
    width = 20.0 / math.sqrt(len(x) / 4.0)
    grid = np.linspace(2.0 - width, 2.0 + width, nodes)
    log_joint = log_normal(grid, 0.0, PRIOR)
    clutter = log_normal(x, 0.0, CLUTTER)
    for value, noise in zip(x, clutter, strict=True):
        log_joint += np.logaddexp(log_normal(value, grid, 1.0), noise) + math.log(0.5)
    evidence = logsumexp(log_joint) + math.log(grid[1] - grid[0])
    weights = np.exp(log_joint - logsumexp(log_joint))
    mean = weights @ grid
    return mean, math.sqrt(weights @ (grid - mean) ** 2), evidence


def floor(x):
    """EP with all points at once in NumPy, until the posterior moves by less than the tolerance; and its sweeps."""
    noise = log_normal(x, 0.0, CLUTTER)
    site_precision, site_shift = np.zeros_like(x), np.zeros_like(x)
    precision, shift = 1.0 / PRIOR, 0.0
    for sweep in range(1, 1000):
        variance = 1.0 / (precision - site_precision)
        mean = (shift - site_shift) * variance
        total = variance + 1.0
        odds = log_normal(x, mean, total) - noise
        share = 1.0 / (1.0 + np.exp(-odds))
        score = share * (x - mean) / total
        curvature = share / total - share * (1.0 - share) * ((x - mean) / total) ** 2
        ratio = 1.0 - curvature * variance
        site_precision = curvature / ratio
        site_shift = (score + mean * curvature) / ratio
        old = shift / precision, precision**-0.5
        precision, shift = 1.0 / PRIOR + site_precision.sum(), site_shift.sum()
        new = shift / precision, precision**-0.5
        if max(abs(new[0] - old[0]), abs(new[1] - old[1])) < 0.1 * TOLERANCE * new[1]:
            return *new, sweep
    raise RuntimeError("EP in NumPy did not converge")


def model(cv):
    m = cv.Model("clutter")
    n = m.plate("n")
    mean = m.random("mean", cv.gaussian(0.0, variance=PRIOR))
    clean = m.random("clean", cv.bernoulli(0.5), plates=n)
    m.random("x", cv.switch(clean, cv.gaussian(mean, variance=1.0), cv.gaussian(0.0, variance=CLUTTER)))
    return m


def main():
    parser = harness.options(__doc__)
    parser.set_defaults(repeats=9)
    parser.add_argument("--points", type=int, default=2000)
    arguments = parser.parse_args()
    report = harness.Report("clutter", **vars(arguments))
    x = data(arguments.points)
    truth, (mean, sd, sweeps) = exact(x), floor(x)
    facts = {
        "exact (mean, sd, log evidence)": tuple(map(float, truth)),
        "NumPy (mean, sd, sweeps)": (float(mean), float(sd), sweeps),
        "Infer.NET ms (2000 points)": INFER_NET_MS,
    }
    runs = {"NumPy": lambda: floor(x)[0]}
    if not arguments.peers:
        import cavity as cv

        found = cv.infer(model(cv), {"x": x}, method="ep", tolerance=TOLERANCE)
        apart = abs(found["mean"].mean - mean) / sd, abs(found["mean"].sd - sd) / sd
        if not found.converged or max(apart) > 2e-6:
            raise SystemExit(f"cavity is {apart} sd from the fixed point: {found.diagnosis}")
        facts["cavity (mean, sd, log evidence)"] = (
            float(found["mean"].mean),
            float(found["mean"].sd),
            found.log_evidence,
        )
        facts["cavity, sweeps"] = found.iterations
        facts["cavity from the exact posterior, sd"] = float(abs(found["mean"].mean - truth[0]) / truth[1])
        facts["cavity from the exact log evidence"] = float(found.log_evidence - truth[2])

        program = cv.compile(model(cv), observed=["x"], method="ep", sizes={"n": len(x)}, tolerance=TOLERANCE)

        def ours():
            program({"x": x})["mean"].sd  # noqa: B018

        runs["cavity"] = ours
    title = f"Clutter, {len(x)} points, to {TOLERANCE:g} sd"
    report.add(harness.compare(title, runs, arguments.repeats, arguments.budget), **facts)


if __name__ == "__main__":
    main()
