"""Energies along the path of tempering: the galaxies with three components, two priors, and a surrogate of the prior.

E13 and E14 of the source: the mean log likelihood at inverse temperatures from 0 to 1, whose integral is the log
evidence. At 0 it is known in closed form. Then the reference is the posterior of three rows, which shortens the path.
Source: paquet2007thesis.
"""

import common
import components

# isort: split
import math

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from scipy.special import digamma

import cavity as cv

PRINTED = {"narrow": (-1.72e5, -1.71e3), "broad": (-4.117e7, math.nan)}  # at 0 and at .001; the last by its formula
PRIORS = {"narrow": components.NARROW, "broad": components.BROAD}
THREE = (3, 40, 79)  # rows of the surrogate


def at_zero(x, ratio, shape=1.0, rate=0.11):
    """The mean under the prior: (N / 2) (E log tau - log 2 pi) - sum (1 / ratio + x^2 E tau) / 2."""
    logs = 0.5 * len(x) * (digamma(shape) - math.log(rate) - math.log(2.0 * math.pi))
    return logs - 0.5 * float(np.sum(1.0 / ratio + x**2 * shape / rate))


def energies(x, ratio, sweeps, rungs=24, smallest=1e-3):
    model, data = components.mixture(x, 3, ratio)
    ladder = np.concatenate([[0.0], np.geomspace(smallest, 1.0, rungs)])
    return cv.evidence(model, data, ladder=ladder, sweeps=sweeps, seed=1, progress=False)


def surrogate(x, ratio, sweeps):
    """The reference is what EP makes of three rows, by the ladder that is adapted."""
    model, data = components.mixture(x, 3, ratio)
    few = components.mixture(x[list(THREE)], 3, ratio)
    reference = cv.infer(*few, method="ep", accuracy="fast", restarts=4)
    return cv.evidence(model, data, reference=reference, wider=4.0, sweeps=sweeps, seed=1, progress=False)


def row(name, x, found):
    known = at_zero(x, PRIORS[name])
    means = found.log_ratio_means
    integral = found.estimates.get("thermodynamic integration")
    told = [f"{found.log_evidence:.2f} +- {found.standard_error:.2f}", f"{integral.value:.2f}" if integral else "none"]
    exact, printed = f"{known:.4g}", [f"{value:.3g}" for value in PRINTED[name]]
    return [name, exact, f"{means[0]:.3g}", printed[0], f"{means[1]:.4g}", printed[1], *told]


def picture(found):
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(13, 3.5))
    for name, one in found.items():
        left.semilogx(one.ladder[1:], one.log_ratio_means[1:], marker=".", label=name)
        middle.loglog(one.ladder[1:], one.log_ratio_sds[1:], marker=".", label=name)
        right.plot(one.ladder[:-1], one.rejections, marker=".", label=name)
    left.set(xlabel="inverse temperature", title="mean log ratio", yscale="symlog")
    middle.set(xlabel="inverse temperature", title="its standard deviation")
    right.set(xlabel="inverse temperature", title="rejected exchanges", xscale="symlog")
    right.set_xscale("symlog", linthresh=1e-6)
    left.legend(fontsize="small")
    figure.tight_layout()
    return figure


def main():
    arguments = common.options(__doc__).parse_args()
    x = components.real(arguments, "galaxy")
    sweeps = 512 if arguments.quick else 9000
    found = {name: energies(x, ratio, sweeps) for name, ratio in PRIORS.items()}
    titles = ["prior", "at 0, exact", "measured", "printed", "at .001", "printed", "log evidence", "thermodynamic"]
    common.table("E13, E14: mean log likelihood", titles, [row(name, x, one) for name, one in found.items()])
    found |= {f"{name}, from three rows": surrogate(x, ratio, sweeps) for name, ratio in PRIORS.items()}
    rows = [[name, f"{one.barrier:.1f}", len(one.ladder), str(one.round_trips)] for name, one in found.items()]
    values = [f"{one.log_evidence:.2f} +- {one.standard_error:.2f}" for one in found.values()]
    rows = [[*own, value] for own, value in zip(rows, values, strict=True)]
    common.table("paths", ["reference", "barrier", "rungs", "round trips", "log evidence"], rows)
    kept = {name: {"ladder": one.ladder.tolist(), "means": one.log_ratio_means.tolist()} for name, one in found.items()}
    common.save("energies", {"energies": picture(found)}, results={"paths": rows, "along": kept})


if __name__ == "__main__":
    main()
