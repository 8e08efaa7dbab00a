"""Figure 6.1: a Gamma belief of a shape by NCVMP and by gradient descent.

shape ~ Gamma(1, 1) and y = 1 is seen, y ~ Gamma(shape, 1): the posterior is proportional to exp(-s) / gamma(s). The
thesis shows KL(q || posterior) over the two parameters of q = Gamma(a, b), gradient descent on it with learning rate 1
("very slow due to the flat region for large values of a and b"), and undamped NCVMP ("the minimum in only a few
steps"). It gives no numbers; those of the reference come from an independent minimisation and mpmath.
"""

import common

# isort: split
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from scipy.integrate import quad
from scipy.special import gammaln

import cavity as cv
from cavity.factors.families import Gamma
from cavity.factors.positive.gamma import expected_lgamma

REFERENCE = {"a": 2.61046, "b": 2.21058, "KL": 0.00397537, "mean of q": 1.18090, "variance of q": 0.53420}
REFERENCE_STEPS = [(2.345, 2.128), (2.541, 2.153), (2.606, 2.211), (2.609, 2.209), (2.610, 2.211)]
REFERENCE_TRUTH = {"mean": 1.18351, "variance": 0.50300, "normaliser": 0.619858}
STARTS = [(1.0, 1.0), (6.0, 6.0)]
NEAR = 1e-4  # of KL above its minimum: arrived


def model():
    m = cv.Model("a shape from one number")
    shape = m.random("shape", cv.gamma(1.0, 1.0))
    m.random("y", cv.gamma(shape, 1.0))
    return m


def truth():
    """Mean, variance and normaliser of exp(-s) / gamma(s)."""
    zero, one, two = (
        quad(lambda s, k=k: s**k * np.exp(-s - gammaln(s)), 0, 60, epsabs=0, epsrel=1e-13, limit=200)[0]
        for k in range(3)
    )
    return {"mean": one / zero, "variance": two / zero - (one / zero) ** 2, "normaliser": zero}


def divergence(normaliser):
    """KL(q || posterior) as a function of a and b."""

    def kl(a, b):
        q = Gamma.from_parameters(shape=a, rate=b)
        return -q.entropy() + q.mean() + expected_lgamma(q.moments()) + np.log(normaliser)

    return kl


def ncvmp(start, steps):
    """Parameters (a, b) after each undamped update: the prior times the message, a gradient in the moments of q."""
    prior = Gamma.from_parameters(shape=1.0, rate=1.0)

    @jax.jit
    def update(a, b):
        message = jax.grad(expected_lgamma)(Gamma.from_parameters(shape=a, rate=b).moments())
        moved = Gamma(prior.negative_rate - message.mean, prior.shape_minus_one - message.log)
        return moved.shape, moved.rate

    path = [start]
    for _ in range(steps):
        path.append(tuple(map(float, update(*path[-1]))))
    return np.array(path)


def engine_path(steps):
    """The same by the engine, sweep by sweep: its first sweep sets q to the prior, which is (1, 1)."""
    found = [
        cv.infer(model(), {"y": 1.0}, method="ncvmp", max_iterations=k, acceleration=0, tolerance=1e-14)["shape"]
        for k in range(1, steps + 2)
    ]
    return np.array([[float(q.parameters[name]) for name in ("shape", "rate")] for q in found])


def gradient_descent(kl, start, steps):
    """Parameters after each step of length one down the gradient in (a, b)."""
    slope = jax.jit(jax.grad(kl, (0, 1)))
    path = [start]
    for _ in range(steps):
        path.append(tuple(x - float(d) for x, d in zip(path[-1], slope(*path[-1]), strict=True)))
    return np.array(path)


def steps_needed(kl, path):
    """Steps until KL is within NEAR of its minimum, None where it never is."""
    gap = np.asarray(jax.vmap(kl)(*path.T)) - REFERENCE["KL"]
    return int(np.argmax(gap < NEAR)) if (gap < NEAR).any() else None


def picture(kl, paths):
    """The surface with the paths, and how far above the minimum each is, step by step."""
    ends = np.concatenate(list(paths.values()))
    a, b = (np.geomspace(0.3, 1.3 * ends[:, i].max(), 120) for i in (0, 1))
    grid = np.asarray(jax.jit(jax.vmap(jax.vmap(kl, (0, None)), (None, 0)))(jnp.asarray(a), jnp.asarray(b)))
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.5))
    drawn = axes[0].contourf(a, b, np.log10(grid), 20, cmap="Greys_r")
    figure.colorbar(drawn, ax=axes[0], label="log10 KL")
    for label, path in paths.items():
        style = "o-" if label.startswith("NCVMP") else ".-"
        axes[0].plot(*path.T, style, label=label, markersize=3)
        gap = np.asarray(jax.vmap(kl)(*path.T)) - REFERENCE["KL"]
        axes[1].loglog(1 + np.arange(len(gap)), np.maximum(gap, 1e-9), style, label=label, markersize=3)
    axes[0].set(xscale="log", yscale="log", xlabel="a", ylabel="b")
    axes[1].set(xlabel="1 + steps", ylabel="KL above its minimum")
    axes[1].legend(fontsize=8)
    return figure


def main():
    arguments = common.options(__doc__).parse_args()
    exact = truth()
    with jax.enable_x64(True):
        kl = divergence(exact["normaliser"])
        steps = 400 if arguments.quick else 3000
        paths = {f"NCVMP from {start}": ncvmp(start, 20) for start in STARTS}
        paths |= {f"gradient descent from {start}": gradient_descent(kl, start, steps) for start in STARTS}
        needed = {label: steps_needed(kl, path) for label, path in paths.items()}
        first = next(iter(paths.values()))
        (a, b), q = first[-1], Gamma.from_parameters(shape=first[-1, 0], rate=first[-1, 1])
        ours = dict(zip(REFERENCE, (a, b, float(kl(a, b)), float(q.mean()), float(q.variance())), strict=True))
        figure = picture(kl, paths)
    engine = engine_path(len(REFERENCE_STEPS))
    common.table(
        "At the minimum",
        ["", "reference", "ours"],
        [(name, f"{REFERENCE[name]:.6g}", f"{ours[name]:.6g}") for name in REFERENCE]
        + [(f"{name} of the posterior", f"{REFERENCE_TRUTH[name]:.6g}", f"{exact[name]:.6g}") for name in exact],
    )
    common.table(
        "NCVMP without damping, from (1, 1): (a, b)",
        ["step", "reference", "the update", "the engine"],
        [
            (str(k + 1), *("({:.3f}, {:.3f})".format(*pair) for pair in (step, first[k + 1], engine[k + 1])))
            for k, step in enumerate(REFERENCE_STEPS)
        ],
    )
    common.table(
        f"Steps until KL is within {NEAR:g} of its minimum (the thesis: a few against very many)",
        ["", "steps"],
        [(label, f"more than {steps}" if count is None else str(count)) for label, count in needed.items()],
    )
    common.save("figure_6_1", figure, minimum=ours, truth=exact, engine=engine, steps=needed)
    if max(abs(ours[name] - value) for name, value in REFERENCE.items()) > 1e-5:
        raise SystemExit("The minimum is not that of the reference.")


if __name__ == "__main__":
    main()
