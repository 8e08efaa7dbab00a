"""Variational transition kernels on the toy of the source, whose every number is known, and on a mixture.

E16 to E18: the densities of the kernels at 1.3, acceptance by distance (printed: .939 on average), and chains begun
far out, which stay there without a random walk. Then the variance of weights, and the galaxies by the kernel and by
Gibbs sampling. Source: paquet2007thesis.
"""

import common
import components

# isort: split
import time

import arviz as az
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from scipy import stats

import cavity as cv

R = 0.9604  # of the present point, what a proposal keeps
OUTER = 1.0 / (1.0 - R)  # the precision of one number given the other
POINTS = (0.0, 1.0, 2.0, 5.0, 10.0, 15.0, 20.0)
PRINTED = (1.0, 0.924146, 0.822387, 0.480840, 0.098432, 0.007958, 2.46e-4)
SHARES = (0.1, 0.2, 0.3, 0.35)
VARIANCES = (0.017864, 0.095445, 0.368769, 0.888079)  # of the specification


def toy(r=R, datum=0.0):
    """theta ~ N(0, 1) and z, of correlation sqrt(r); x only makes the prior of theta what it is to be."""
    outer = 1.0 / (1.0 - r)
    inner = np.sqrt(r) * outer
    model = cv.Model("toy")
    theta = model.random("theta", cv.gaussian(0.0, precision=outer - inner))
    z = model.random("z", cv.gaussian(theta, precision=inner))
    model.random("x", cv.gaussian(z, precision=outer - inner))
    return model, {"x": np.array(datum)}


def drawn(kernel, draws, r=R, datum=0.0, **options):
    return cv.sample(*toy(r, datum), draws=draws, collapse=["z"], kernel=kernel, progress=False, **options)


def expected(now):
    """Acceptance at a point, by quadrature of the formula."""
    sd = OUTER**-0.5
    grid = np.linspace(R * now - 9.0 * sd, R * now + 9.0 * sd, 20001)
    taken = np.exp(np.minimum(0.0, 0.5 * OUTER * R * (1.0 - R) * (grid**2 - now**2)))
    return float(np.trapezoid(taken * stats.norm.pdf(grid, R * now, sd), grid))


def acceptance(draws):
    """The curve by quadrature, and the mean over the posterior by the chain itself."""
    curve = [expected(now) for now in POINTS]
    mean = drawn("variational", draws).acceptance["theta"]["variational"]
    rows = [[f"{now:g}", own, known] for now, own, known in zip(POINTS, curve, PRINTED, strict=True)]
    common.table("E17: acceptance", ["at", "here", "known"], [*rows, ["mean, by the chain", mean, 0.939350]])
    return {"curve": curve, "mean": mean}


def tails(draws):
    """Where chains are that began a hundred sds from the posterior, whose mean is 99."""
    alone, walked = (
        drawn(kernel, draws, datum=200.0, chains=2, warmup=1500)
        for kernel in (cv.VariationalKernel(random_walk=False), "variational")
    )
    rows = [
        [name, float(own.mean("theta")), str(own.acceptance["theta"])]
        for name, own in (("alone", alone), ("with a walk", walked))
    ]
    common.table("E18: a far start", ["", "mean (99)", "taken"], rows)
    return rows


def weights(draws):
    rows = []
    for r, known in zip(SHARES, VARIANCES, strict=True):
        own = drawn(cv.VariationalKernel(weighted=True), draws, r)
        logs = own.log_weights - cv.infer(*toy(r), method="ep").log_evidence
        rows.append([f"{r:g}", float(np.exp(logs).mean()), float(np.exp(logs).var()), known, float(own.pareto_k)])
    common.table("Weights", ["r", "mean", "variance", "known variance", "Pareto k"], rows)
    return rows


def galaxies(arguments, draws):
    """The largest of three means, by the kernel and by Gibbs: mean, sd, and effective draws."""
    model, data = components.mixture(components.real(arguments, "galaxy"), 3, components.NARROW)
    rows = []
    for kernel in ("gibbs", "variational"):
        begin = time.perf_counter()
        own = cv.sample(model, data, draws=draws, kernel=kernel, progress=False, seed=1)
        spent = time.perf_counter() - begin
        largest = own["mean"].max(axis=-1)
        effective = float(az.ess(largest))
        rows.append([kernel, float(largest.mean()), float(largest.std()), effective, spent])
    common.table("Galaxies", ["kernel", "largest mean", "sd", "effective draws", "s, compiling too"], rows)
    return rows


def picture():
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5))
    grid, sd = np.linspace(-1.0, 3.0, 801), OUTER**-0.5
    densities = {
        "exact kernel": (R * 1.3, sd * np.sqrt(1.0 + R)),
        "variational kernel": (R * 1.3, sd),
        "beliefs of VMP": (0.0, sd),
        "posterior": (0.0, 1.0),
    }
    for name, (mean, own) in densities.items():
        left.plot(grid, stats.norm.pdf(grid, mean, own), label=name)
    left.set(title="E16: from 1.3", xlabel="theta")
    left.legend(fontsize="small")
    far = np.linspace(0.0, 20.0, 81)
    right.plot(far, [expected(now) for now in far])
    right.set(title="E17: acceptance", xlabel="theta", yscale="log")
    figure.tight_layout()
    return figure


def main():
    arguments = common.options(__doc__).parse_args()
    draws = 2000 if arguments.quick else 20_000
    results = {"acceptance": acceptance(draws), "tails": tails(2000), "weights": weights(2 * draws)}
    if arguments.data is not None:
        results["galaxies"] = galaxies(arguments, draws // 4)
    common.save("transition_kernels", {"transition_kernels": picture()}, results=results)


if __name__ == "__main__":
    main()
