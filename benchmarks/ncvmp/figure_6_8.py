"""Figure 6.8: how tight the bounds of the softmax are, by classes, variances and spread of the means.

100 random q = prod_k N(m_k, v), m_k ~ N(0, u), with K = 10, u = v = 1 where they are not varied. The truth is 10^6
draws, the same standard normals for all q of one K, with the linear part of the function as a control variate.
"""

import common

# isort: split
import jax  # pyright: ignore[reportMissingImports]
import numpy as np

from cavity.factors.links.softmax import BOUNDS  # pyright: ignore[reportMissingImports]

EXACT = "quadrature"
DEFAULT = {"K": 10, "v": 1.0, "u": 1.0}
GRID = {
    "K": [3, 5, 10, 20, 50, 100],
    "v": [0.01, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0],
    "u": [0.1, 0.3, 1.0, 3.0, 10.0],
}
# log10 of mean relative errors by an independent program, 30 draws: log, tilted, quadratic, bohning, taylor.
KNOWN = {
    ("K", 10): (-1.44, -2.05, -0.36, -0.22, -2.13),
    ("v", 0.1): (-2.47, -3.79, -0.43, -1.15, -3.82),
    ("v", 10.0): (-0.40, -0.57, -0.13, 0.55, -0.67),
    ("v", 100.0): (0.38, 0.37, -0.03, 1.13, 0.25),
    ("K", 3): (-0.77, -1.60, -0.24, -0.77, -1.77),
    ("K", 50): (-2.15, -2.65, -0.18, 0.39, -2.68),
    ("u", 0.1): (-1.55, -2.06, -0.31, -0.18, -2.07),
    ("u", 10.0): (-1.29, -2.32, -0.68, -0.42, -2.43),
}
KNOWN_NAMES = ("log", "tilted", "quadratic", "bohning", "taylor")


def truth(m, v, draws, seed=1, chunk=20_000):
    """E log sum_k exp(s_k) for all rows of m by Monte Carlo; the sums of all rows are one product of matrices."""
    rng = np.random.default_rng(seed)
    top = m.max(1, keepdims=True)
    weight = np.exp(m - top).T
    slope = weight / weight.sum(0)
    total = np.zeros(len(m))
    for _ in range(draws // chunk):
        noise = np.sqrt(v) * rng.normal(size=(chunk, m.shape[1]))
        total += (np.log(np.exp(noise) @ weight) - noise @ slope).sum(0)
    return top[:, 0] + total / (draws // chunk * chunk)


def values(m, v):
    """Every bound at every row of m, to full precision."""
    with jax.enable_x64(True):
        return {name: np.asarray(jax.jit(bound)(m, np.full_like(m, v))) for name, bound in BOUNDS.items()}


def setting(axis, at, count, draws):
    """Bounds and truth with one parameter off its default."""
    chosen = DEFAULT | {axis: at}
    m = np.sqrt(chosen["u"]) * np.random.default_rng(0).normal(size=(count, chosen["K"]))
    return values(m, chosen["v"]), truth(m, chosen["v"], draws)


def errors(found):
    bounds, exact = found
    return {name: np.log10(np.mean(np.abs(value / exact - 1.0))) for name, value in bounds.items()}


def beside(found, name, where):
    """A cell of the table: the error, with the known one in brackets."""
    known = dict(zip(KNOWN_NAMES, KNOWN.get(where, ()), strict=False))
    return f"{found:.2f} ({known[name]:.2f})" if name in known else f"{found:.2f}"


def statements(results, error):
    """What the thesis says of its figure, and what is found here."""
    all_found = [found for row in results.values() for found in row.values()]
    dominated = min(float(np.mean(b["tilted"] <= b["log"] + 1e-12)) for b, _ in all_found)
    below = np.mean([np.mean(b["taylor"] < exact) for b, exact in all_found])

    def along(axis, name):
        return "  ".join(f"{at:g}: {one[name]:.2f}" for at, one in error[axis].items())

    def ends(axis, name):
        first, *_, last = (one[name] for one in error[axis].values())
        return last - first

    lowest, highest = min(error["v"]), max(error["v"])
    bounds = [name for name in error["v"][highest] if name not in ("taylor", EXACT, "adaptive")]
    best = min(bounds, key=lambda name: error["v"][highest][name])
    worst = {name: max(one[name] for at, one in error["v"].items() if at < 1.0) for name in ("log", "tilted")}
    last = [one["quadratic"] for at, one in error["K"].items() if at >= 10]
    loose = sum(one["bohning"] > one["quadratic"] for row in error.values() for one in row.values())
    count = sum(len(row) for row in error.values())
    print(f"\ntilted dominates log: on {100 * dominated:g} % of the q of every setting")
    print(f"quadratic's error grows with K: {'yes' if last == sorted(last) else 'no'} from K = 10 on")
    print(f"    {along('K', 'quadratic')}")
    print(f"log and tilted tighten with K: {'yes' if ends('K', 'log') < 0 and ends('K', 'tilted') < 0 else 'no'}")
    print(f"    log {along('K', 'log')}\n    tilted {along('K', 'tilted')}")
    print(f"quadratic is strong at high variance: the tightest bound at v = {highest:g} is {best}")
    print(f"    {along('v', 'quadratic')}")
    print(f"Bohning is very loose everywhere: looser than quadratic in {loose} of {count} settings (not at small v)")
    print(f"log and tilted are very accurate at v < 1: worst {worst['log']:.2f} and {worst['tilted']:.2f}")
    limit = "  ".join(f"{name} {error['v'][lowest][name]:.2f}" for name in ("log", "tilted"))
    print(f"    and exact as v -> 0: at v = {lowest:g} {limit}")
    print(f"Taylor is accurate but no bound: below the truth in {100 * below:.0f} % of cases")
    nearest = min((np.abs(exact).min(), at) for at, (_, exact) in results["K"].items())
    print(f"    (means of relative errors lean on q whose truth is near zero: {nearest[0]:.2g} at K = {nearest[1]})")
    print("the spread of the means matters little: error at largest u less that at smallest")
    print("    " + "  ".join(f"{name}: {ends('u', name):+.2f}" for name in error["u"][1.0] if name != EXACT))
    default, exact = results["K"][10]
    print(f"\nours (the expectation itself), K = 10, v = 1: at most {np.abs(default[EXACT] / exact - 1).max():.1e}")
    print("    relative from Monte Carlo over the q; asked for: 1e-3")


def picture(error):
    figure, panels = common.plt.subplots(1, 3, figsize=(12, 4), sharey=True)
    for panel, (axis, row) in zip(panels, error.items(), strict=True):
        for name in BOUNDS:
            label = f"{name} (ours, Monte Carlo's noise)" if name == EXACT else name
            panel.plot(list(row), [one[name] for one in row.values()], "o-", ms=3, label=label)
        panel.set(xscale="log", xlabel={"K": "classes K", "v": "variance v", "u": "variance u of the means"}[axis])
    panels[0].set_ylabel("log10 relative error")
    panels[-1].legend(fontsize=7)
    return figure


def main():
    arguments = common.options(__doc__).parse_args()
    count, draws = (20, 100_000) if arguments.quick else (100, 1_000_000)
    results = {axis: {at: setting(axis, at, count, draws) for at in row} for axis, row in GRID.items()}
    error = {axis: {at: errors(found) for at, found in row.items()} for axis, row in results.items()}
    rows = [
        [f"{axis} = {at:g}", *(beside(one[name], name, (axis, at)) for name in BOUNDS)]
        for axis, row in error.items()
        for at, one in row.items()
    ]
    common.table(
        f"log10 mean relative error over {count} q; in brackets an independent program, 30 draws", ["", *BOUNDS], rows
    )
    statements(results, error)
    keys = {axis: {str(at): one for at, one in row.items()} for axis, row in error.items()}
    common.save("figure_6_8", picture(error), errors=keys, draws=draws, count=count)


if __name__ == "__main__":
    main()
