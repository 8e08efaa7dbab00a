"""Ockham hills: the evidence of mixtures of one to six components by VMP, power EP and EP, beside tempering.

Four data sets, a narrow and a broad prior, twelve random starts of each; a run counts where it converged, and a hill
is of the best of those that did. EP and power EP take the double loop where plain sweeps do not converge. Tempering
goes from the beliefs of the best run of VMP, and has all orders of the components, so log J! is added to the others: a
path from the prior meets a change of phase, and was tens of nats off where that lay far from it. Figures 3.10 to 3.13
of the source, whose old faithful table has 222 rows and is not known. Source: paquet2007thesis.
"""

import common
import components

# isort: split
import json
import math
import time
import warnings

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

import cavity as cv

STARTS, LARGEST = 12, 6
LOOP = 6  # starts of the double loop
PRINTED = {("galaxy", "narrow", 3, "EP"): (-232.4, -243.8), ("enzyme", "narrow", 3, "EP"): (-82.4,)}
PRIORS = {"narrow": components.NARROW, "broad": components.BROAD}


def best(model, data, method):
    """The fixed points that the starts met, best first, how many starts converged, and the posterior of the best."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        posterior = cv.infer(model, data, method=method, restarts=STARTS, seed=0, max_iterations=400)
    points = [(one.log_evidence, one.starts) for one in posterior.restarts if one.converged]
    return {"points": points, "converged": sum(starts for _, starts in points), "loop": None}, posterior


def in_double_loop(model, data, method):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = cv.infer(model, data, method=method, restarts=LOOP, seed=0, schedule="double loop", max_iterations=60)
    return [(one.log_evidence, one.starts) for one in found.restarts if one.converged]


def measured(x, number, ratio, tempered):
    model, data = components.mixture(x, number, ratio)
    found, runs = {}, {}
    for who, method in components.METHODS.items():
        begin = time.perf_counter()
        found[who], runs[who] = best(model, data, method)
        if who != "VMP" and not found[who]["points"]:
            found[who]["loop"] = in_double_loop(model, data, method)
        found[who]["seconds"] = time.perf_counter() - begin
    if tempered:
        begin = time.perf_counter()
        truth = cv.evidence(model, data, runs["VMP"], wider=1.5, sweeps=tempered, progress=False, seed=1)
        found["tempering"] = {
            "value": truth.log_evidence,
            "error": truth.standard_error,
            "orders": truth.orders,
            "round trips": truth.round_trips,
            "seconds": time.perf_counter() - begin,
        }
    return found


def top(entry):
    points = entry["points"] or entry["loop"] or []
    return max((value for value, _ in points), default=float("nan"))


def told(results, name, prior):
    rows = []
    for number, found in results[name][prior].items():
        row = [str(number)]
        for who in components.METHODS:
            own = found[who]
            row.append(f"{top(own):.2f} ({'double loop' if not own['points'] and own['loop'] else own['converged']})")
        truth = found.get("tempering")
        row.append(f"{math.lgamma(int(number) + 1):.2f}")
        row.append("" if truth is None else f"{truth['value']:.2f} +- {truth['error']:.2f}")
        rows.append(row)
    titles = ["components", *(f"{who} (of {STARTS})" for who in components.METHODS), "log J!", "tempering"]
    common.table(f"{name}, {prior} prior", titles, rows)


def picture(results):
    figure, axes = plt.subplots(len(results), 2, figsize=(9, 3 * len(results)), squeeze=False)
    for row, (name, by_prior) in zip(axes, results.items(), strict=True):
        for axis, (prior, found) in zip(row, by_prior.items(), strict=False):
            numbers = [int(number) for number in found]
            for who in components.METHODS:
                values = [top(one[who]) + math.lgamma(j + 1) for j, one in zip(numbers, found.values(), strict=True)]
                axis.plot(numbers, values, marker="o", label=f"{who} + log J!")
            known = [
                (j, one["tempering"]) for j, one in zip(numbers, found.values(), strict=True) if "tempering" in one
            ]
            if known:
                each = (
                    [j for j, _ in known],
                    [one["value"] for _, one in known],
                    [2 * one["error"] for _, one in known],
                )
                axis.errorbar(each[0], each[1], yerr=each[2], color="black", label="tempering, 2 s.e.")
            axis.set(title=f"{name}, {prior} prior", xlabel="components", ylabel="log evidence")
    axes[0, 0].legend(fontsize="small")
    figure.tight_layout()
    return figure


def main():
    parser = common.options(__doc__)
    parser.add_argument("--sets", nargs="+", choices=list(components.SETS), help="all that are there")
    parser.add_argument("--priors", nargs="+", default=list(PRIORS), choices=list(PRIORS))
    parser.add_argument("--sweeps", type=int, default=512, help="of tempering; 0 leaves it out")
    arguments = parser.parse_args()
    largest, sweeps = (3, 64) if arguments.quick else (LARGEST, arguments.sweeps)
    results = {}
    for name in arguments.sets or components.there(arguments):
        x = components.real(arguments, name)
        results[name] = {}
        for prior in arguments.priors:
            results[name][prior] = {}
            for number in range(1, largest + 1):
                results[name][prior][number] = measured(x, number, PRIORS[prior], sweeps)
                print(json.dumps({name: {prior: {number: results[name][prior][number]}}}), flush=True)
            told(results, name, prior)
    common.save("hills", {"hills": picture(results)}, results=results, printed={str(k): v for k, v in PRINTED.items()})


if __name__ == "__main__":
    main()
