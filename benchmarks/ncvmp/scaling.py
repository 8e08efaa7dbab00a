"""Cost of one sweep against rows and classes, and one pass over a million rows against one product of BLAS.

Statement: cost grows linearly in the rows N and the classes K; at N = 10^6, D = 100, K = 2 one sweep takes at most
three times as long as X.T @ (w * X) on one thread. CPU time throughout; every point is a process of its own, so that
its peak memory is its own. Kinds: the softmax by its tilted and by its logarithmic bound, and the logistic of two
classes by NCVMP and by EP.
"""

import json
import subprocess
import sys
import time

import common
import numpy as np

FEW, KINDS = 2, ("softmax tilted", "softmax log", "logistic ncvmp", "logistic ep")


def model_of(kind, features, classes):
    """A model and its method."""
    import cavity as cv

    if kind.startswith("softmax"):
        from cavity.models import softmax_regression

        return softmax_regression(features, classes), cv.ncvmp(bound=kind.split()[1])
    m = cv.Model("logistic regression")
    row = m.plate("row")
    x = m.input("x", cv.vector(features), plates=row)
    weight = m.random("weight", cv.vector_gaussian(np.zeros(features), covariance=np.eye(features)))
    m.random("y", cv.bernoulli(cv.logistic(cv.dot(weight, x))), plates=row)
    return m, kind.split()[1]


def data_of(kind, number, features, classes):
    """Features and outcomes from the model, in pieces: they are the only large arrays here."""
    random = np.random.default_rng(0)
    x, y = random.standard_normal((number, features)), np.empty(number, np.int32)
    weight = 2.0 * random.standard_normal((features, classes)) / np.sqrt(features)
    for piece in np.array_split(np.arange(number), -(-number // 10_000)):
        y[piece] = np.argmax(x[piece] @ weight + random.gumbel(size=(len(piece), classes)), axis=1)
    return {"x": x, "y": y if kind.startswith("softmax") else y == 1}


def cpu(run):
    """The shortest CPU time of three calls; of one where a call takes long."""
    times = []
    while len(times) < 3 and sum(times) < 20.0:
        begin = time.process_time()
        run()
        times.append(time.process_time() - begin)
    return min(times)


def one(kind, number, features, classes):
    """CPU seconds of a sweep (the slope between a short and a longer run) and of X.T @ (w * X), and memory."""
    import cavity as cv

    data = data_of(kind, number, features, classes)
    x, weight = data["x"], np.random.default_rng(1).random(number)
    product = cpu(lambda: x.T @ (weight[:, None] * x))
    before = peak()
    model, method = model_of(kind, features, classes)
    many = 12 if number * features * classes < 10**7 else 6
    programs = {
        sweeps: cv.compile(model, observed=["y"], method=method, max_iterations=sweeps, tolerance=1e-300)
        for sweeps in (FEW, many)
    }
    for program in programs.values():
        assert program(data).log_evidence < 0.0
    # The arrays are in place and the programs compiled: what is left is the run, and a copy of the data.
    taken = {sweeps: cpu(lambda program=program: program(data).log_evidence) for sweeps, program in programs.items()}
    sweep = (taken[many] - taken[FEW]) / (many - FEW)
    data_size = sum(array.nbytes for array in data.values()) / 1e9
    return {"sweep": sweep, "product": product, "data": data_size, "peak": peak(), "before": before}


def peak():
    """The largest memory of this process so far, in gigabytes."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def measured(*point):
    """One point, in a process of its own."""
    call = [sys.executable, __file__, "--one", *map(str, point)]
    done = subprocess.run(call, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    print(*point, {name: round(value, 5) for name, value in found.items()}, flush=True)
    return found


def slope(sizes, seconds):
    """The exponent of cost by size, fitted to the larger half: below it what does not grow still shows."""
    half = len(sizes) // 2
    return float(np.polyfit(np.log(sizes[half:]), np.log(seconds[half:]), 1)[0])


def main():
    parser = common.options(__doc__)
    parser.add_argument("--one", nargs=4, metavar=("KIND", "N", "D", "K"), help="measure one point and print it")
    arguments = parser.parse_args()
    if arguments.one:
        kind, *sizes = arguments.one
        print(json.dumps(one(kind, *map(int, sizes))))
        return
    quick = arguments.quick
    rows = [1_000, 10_000, 100_000] if quick else [1_000, 10_000, 100_000, 1_000_000]
    classes = [2, 20, 200] if quick else [2, 10, 100, 300, 1_000]
    by_rows = {kind: [measured(kind, n, 20, 2)["sweep"] for n in rows] for kind in KINDS}
    by_classes = {kind: [measured(kind, 2_000, 20, k)["sweep"] for k in classes] for kind in KINDS[:2]}
    largest = {kind: measured(kind, 100_000 if quick else 1_000_000, 100, 2) for kind in KINDS}
    slopes = {
        **{f"{kind}, N": slope(rows, seconds) for kind, seconds in by_rows.items()},
        **{f"{kind}, K": slope(classes, seconds) for kind, seconds in by_classes.items()},
    }
    common.table("Fitted slopes (statement: 1)", ["cost of a sweep", "slope"], list(slopes.items()))
    common.table(
        f"N = {100_000 if quick else 1_000_000}, D = 100, K = 2 (statement: ratio at most 3)",
        ["", "s a sweep", "s X.T @ (w X)", "ratio", "GB data", "GB peak", "GB before"],
        [
            [kind, f["sweep"], f["product"], f["sweep"] / f["product"], f["data"], f["peak"], f["before"]]
            for kind, f in largest.items()
        ],
    )
    common.save(
        "scaling",
        picture(rows, by_rows, classes, by_classes),
        rows=rows,
        by_rows=by_rows,
        classes=classes,
        by_classes=by_classes,
        slopes=slopes,
        largest=largest,
    )


def picture(rows, by_rows, classes, by_classes):
    figure, axes = common.plt.subplots(1, 2, figsize=(9, 4))
    panels = ((rows, by_rows, "rows N (D = 20, K = 2)"), (classes, by_classes, "classes K (N = 2000, D = 20)"))
    for axis, (sizes, found, label) in zip(axes, panels, strict=True):
        for kind, seconds in found.items():
            axis.loglog(sizes, seconds, "o-", label=f"{kind}: slope {slope(sizes, seconds):.2f}")
        axis.set(xlabel=label, ylabel="CPU seconds a sweep")
        axis.legend(fontsize=8)
    return figure


if __name__ == "__main__":
    main()
