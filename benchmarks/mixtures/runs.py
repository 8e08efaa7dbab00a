"""Single runs: traces, fixed points that belong together, predictive densities, and what the order of rows decides.

E04 and E06 to E10, E12 of the source. The log evidence sweep by sweep of VMP and EP on the galaxies, and how many
cavities of EP are improper on its way; its three fixed points, of VMP and of power 1/2 and EP begun at those; the
enzyme data; predictive densities of all three methods beside Gibbs sampling; the contours for old faithful, of which
this table has more rows; and EP from one start in many orders of the rows. The lakes' acidity (E08) is left out where
it is not among the data. Source: paquet2007thesis.
"""

import common
import components

# isort: split
import warnings

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, norm

import cavity as cv

PRINTED = {  # log s at the fixed points that belong together
    "VMP": (-232.63, -240.25, -245.47),
    "power 1/2": (-232.57, -239.78, -244.77),
    "EP": (-232.42, -239.00, -243.76),
}
ORDERS = 30


def nats(value):
    return f"{value:.2f}"


def means(run):
    return ", ".join(f"{value:.1f}" for value in np.sort(run["mean"].mean))


def inferred(model, data, method, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return cv.infer(model, data, method=method, accuracy="fast", **options)


# E04, E06, E07: traces ------------------------------------------------------------------------------------------------


def traces(x):
    """log s by sweep; the bound of VMP does not fall, the evidence of EP does both."""
    model, data = components.mixture(x, 3, components.NARROW)
    found = {}
    for name, method in components.METHODS.items():
        turns = {} if name == "VMP" else {"schedule": "sequential"}
        run = inferred(model, data, method, trace_evidence=True, acceleration=0, max_iterations=400, **turns)
        evidence = run.trace.evidence[np.isfinite(run.trace.evidence)]
        falls = int(np.sum(np.diff(evidence) < -1e-6))
        improper = sum(run.floored.values())
        found[name] = {
            "trace": evidence.tolist(),
            "end": run.log_evidence,
            "falls": falls,
            "run": str(run.code),
            "improper": improper,
        }
    rows = [
        [name, nats(one["end"]), len(one["trace"]), one["falls"], one["improper"], str(one["run"])]
        for name, one in found.items()
    ]
    titles = ["", "log s", "sweeps", "of which it fell", "improper cavities", "run"]
    common.table("E04, E06, E07: sweeps on galaxy, J = 3", titles, rows)
    return found


# E07: improper cavities -----------------------------------------------------------------------------------------------


def improper(x, starts):
    """EP row by row from random starts: how many updates met a cavity that is no distribution, and where it ended."""
    model, data = components.mixture(x, 3, components.NARROW)
    rows = []
    for seed in range(starts):
        run = inferred(model, data, "ep", seed=seed, schedule="sequential", acceleration=0)
        rows.append([seed, nats(run.log_evidence), run.iterations, sum(run.floored.values()), str(run.code)])
    titles = ["start", "log s", "sweeps", "improper cavities", "run"]
    common.table(f"E07: EP on galaxy, J = 3, {len(x)} rows one by one", titles, rows)
    return rows


# E09: fixed points ----------------------------------------------------------------------------------------------------


def matched(x, starts):
    """The fixed points of VMP, and of power EP and EP begun there: log s, and whether they stayed with the means."""
    model, data = components.mixture(x, 3, components.NARROW)
    by_vmp = [one for one in inferred(model, data, "vmp", restarts=starts).all_modes() if one.converged]
    rows = []
    for mode in by_vmp:
        row = [means(mode), nats(mode.log_evidence)]
        for name in ("power 1/2", "EP"):
            run = inferred(model, data, components.METHODS[name], start=mode, damping=0.5, max_iterations=3000)
            row += [nats(run.log_evidence), means(run), str(run.code)]
        rows.append(row)
    titles = ["means by VMP", "VMP", "power 1/2", "means", "run", "EP", "means", "run"]
    common.table("E09: fixed points on galaxy, J = 3", titles, rows)
    print("printed:", PRINTED)
    return rows


# E12: orders ----------------------------------------------------------------------------------------------------------


def orders(x):
    """EP from one start, the rows one by one in random orders: the fixed points that are met, and how often."""
    model, data = components.mixture(x, 3, components.NARROW)
    start = inferred(model, data, "vmp", seed=1, max_iterations=2)
    met = {}
    for seed in range(ORDERS):
        run = inferred(model, data, "ep", start=start, seed=seed, schedule="sequential", max_iterations=300)
        if run.converged:
            value = round(run.log_evidence, 1)
            met[value] = met.get(value, 0) + 1
    rows = [[f"{value:.1f}", count] for value, count in sorted(met.items(), reverse=True)]
    common.table(f"E12: EP from one start in {ORDERS} orders of the rows", ["log s", "runs"], rows)
    return rows


# E08, E09, E10: predictive densities ----------------------------------------------------------------------------------


def by_gibbs(model, data, grid, draws):
    """The predictive density, averaged over draws."""
    start = inferred(model, data, "vmp", restarts=4)
    found = cv.sample(model, data, draws=draws, chains=4, seed=0, progress=False, start=start)
    share, mean, precision = (np.asarray(found[name]) for name in ("share", "mean", "precision"))
    share = share.reshape(-1, share.shape[-1])
    mean = mean.reshape(len(share), share.shape[-1], *mean.shape[3:])
    precision = precision.reshape(len(share), share.shape[-1], *precision.shape[3:])
    kept = np.linspace(0, len(share) - 1, 400).astype(int)
    total = []
    for i in kept:
        if grid.ndim == 1:
            each = norm.logpdf(grid[:, None], mean[i], precision[i] ** -0.5)
        else:
            covariances = np.linalg.inv(precision[i])
            each = np.stack(
                [multivariate_normal.logpdf(grid, m, c) for m, c in zip(mean[i], covariances, strict=True)], -1
            )
        total.append(logsumexp(each + np.log(share[i]), axis=-1))
    return logsumexp(total, axis=0) - np.log(len(kept))


def densities(name, x, number, grid, draws, starts):
    """log p of a new row by all methods and by draws; how far from the draws, on average under these."""
    model, data = components.mixture(x, number, components.NARROW)
    found = {"Gibbs": by_gibbs(model, data, grid, draws)}
    rows = []
    for who, method in components.METHODS.items():
        run = inferred(model, data, method, restarts=starts, max_iterations=500)
        new = run.predict({}, sizes={"n": 1})["x"]
        found[who] = np.array([float(np.squeeze(new.log_density(point[None]))) for point in grid])
        weight = np.exp(found["Gibbs"] - logsumexp(found["Gibbs"]))
        rows.append([who, nats(run.log_evidence), str(run.code), float(weight @ np.abs(found[who] - found["Gibbs"]))])
    common.table(f"{name}, J = {number}", ["", "log s", "run", "|log p - that of draws|"], rows)
    return {"rows": rows, "grid": grid.tolist(), "log p": {who: own.tolist() for who, own in found.items()}}


# pictures -------------------------------------------------------------------------------------------------------------


def picture_of_traces(found):
    figure, axes = plt.subplots(figsize=(6, 3.5))
    for name, one in found.items():
        axes.plot(one["trace"], label=name)
    axes.set(xlabel="sweep", ylabel="log s", ylim=(-275, -228))
    axes.legend()
    figure.tight_layout()
    return figure


def picture_of_densities(found):
    figure, panels = plt.subplots(1, len(found), figsize=(5 * len(found), 3.5))
    for panel, (name, one) in zip(np.atleast_1d(panels), found.items(), strict=True):
        for who, own in one["log p"].items():
            panel.plot(one["grid"], own, label=who, linewidth=2 if who == "Gibbs" else 1)
        panel.set(title=name, ylabel="log p")
        panel.legend(fontsize="small")
    figure.tight_layout()
    return figure


def picture_of_contours(one, across):
    figure, panels = plt.subplots(1, len(one["log p"]), figsize=(4 * len(one["log p"]), 3.5), sharey=True)
    grid = np.array(one["grid"]).reshape(across, across, 2)
    for panel, (who, own) in zip(panels, one["log p"].items(), strict=True):
        panel.contour(
            grid[..., 0], grid[..., 1], np.array(own).reshape(across, across), levels=[-12, -10, -8, -6, -5, -4]
        )
        panel.set(title=who, xlabel="duration")
    figure.tight_layout()
    return figure


def main():
    arguments = common.options(__doc__).parse_args()
    draws, starts = (200, 4) if arguments.quick else (2000, 12)
    galaxy, enzyme, faithful = (components.real(arguments, name) for name in ("galaxy", "enzyme", "old faithful"))
    results = {
        "traces": traces(galaxy),
        "improper": improper(galaxy, starts),
        "matched": matched(galaxy, 3 * starts),
        "orders": orders(galaxy),
    }
    line = np.linspace(5.0, 40.0, 200), np.linspace(0.0, 3.5, 200)
    results["galaxy"] = densities("E09: galaxy", galaxy, 3, line[0], draws, starts)
    results["enzyme"] = densities("E08: enzyme", enzyme, 3, line[1], draws, starts)
    if "acidity" in components.there(arguments):
        lakes = components.real(arguments, "acidity")
        results["acidity"] = densities("E08: acidity", lakes, 2, np.linspace(2.0, 8.0, 200), draws, starts)
    across = 24
    plane = np.stack(np.meshgrid(np.linspace(1.0, 6.0, across), np.linspace(40.0, 100.0, across)), -1).reshape(-1, 2)
    results["old faithful"] = densities("E10: old faithful", faithful, 2, plane, draws, starts)
    pictures = {
        "traces": picture_of_traces(results["traces"]),
        "predictive": picture_of_densities(
            {name: results[name] for name in ("galaxy", "enzyme", "acidity") if name in results}
        ),
        "contours": picture_of_contours(results["old faithful"], across),
    }
    common.save("runs", pictures, results=results)


if __name__ == "__main__":
    main()
