"""Bayesian logistic and probit regression against Infer.NET: CPU time, warm, to convergence, as ratios.

The CPU seconds of Infer.NET (first open-source commit, 2018, under Mono 6.8, one thread of a shared machine of two AMD
EPYC cores) are those from its initial state to means and sds within 1e-6 sd of its fixed point, nothing recompiled.
They were measured on inputs of the same kind and size, which `--data DIR` (the folder with `synth_N1000_D50.csv`)
provides; without it data are drawn with the same sizes. Ours stop at an estimated distance of 1e-6 sd.

Each time also stands over that of two products N x D x D by BLAS (row variances of a predictor, and X' diag X), which
no sweep can do without; EP does them twice, since it needs the evidence and the posterior at different messages.
"""

import common

# isort: split
import time

import numpy as np
from scipy.special import expit

import cavity as cv

# name -> (link, method); then Infer.NET: rows, columns, name -> (iterations, CPU seconds) to 1e-6
OPERATORS = {
    "tilted": (cv.logistic, {"y": cv.ncvmp(bound="tilted")}),
    "quadratic": (cv.logistic, {"y": cv.ncvmp(bound="jaakkola")}),
    "quadrature": (cv.logistic, {"y": cv.ncvmp(bound="quadrature")}),
    "probit EP": (cv.probit, "ep"),
}
INFERNET = {
    (1000, 10): {
        "tilted": (61, 0.1095),
        "quadratic": (31, 0.06801),
        "quadrature": (59, 0.5875),
        "probit EP": (9, 0.08097),
    },
    (1000, 50): {
        "tilted": (75, 2.548),
        "quadratic": (51, 1.705),
        "quadrature": (72, 2.933),
        "probit EP": (12, 6.01),
    },
    (10_000, 10): {"tilted": (61, 1.182), "quadratic": (33, 0.6258), "probit EP": (8, 0.755)},
    (10_000, 50): {"tilted": (60, 18.64)},  # not converged in 60
}


def drawn(rows, columns):
    """Standard normal features and a bias, weights from the prior."""
    rng = np.random.default_rng(1)
    x = np.column_stack([rng.normal(size=(rows, columns)).round(2), np.ones(rows)])
    return {"x": x, "y": rng.random(rows) < expit(x @ rng.normal(size=columns + 1))}


def read(folder, rows, columns):
    path = None if folder is None else next(folder.rglob(f"synth_N{rows}_D{columns}.csv"), None)
    if path is None:
        return drawn(rows, columns)
    table = np.genfromtxt(path, delimiter=",", skip_header=1)
    return {"x": table[:, 1:], "y": table[:, 0] == 1}


def regression(columns, link):
    m = cv.Model("binary regression")
    x = m.input("x", cv.vector(columns), plates=m.plate("row"))
    weight = m.random("w", cv.vector_gaussian(np.zeros(columns), covariance=np.eye(columns)))
    m.random("y", cv.bernoulli(link(cv.dot(weight, x))))
    return m


def cpu(run, repeats=9):
    """The smallest CPU time of a warm call: what else runs on the machine only adds."""
    run()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return min(times)


def products(x):
    """X S and X' diag(w) X by BLAS."""
    square, weight = np.eye(x.shape[1]), np.full(len(x), 0.2)

    def run():
        return x @ square, x.T @ (weight[:, None] * x)

    return cpu(run)


def contest(data, rows, columns):
    blas, lines = products(data["x"]), []
    for name, (link, method) in OPERATORS.items():
        program = cv.compile(regression(data["x"].shape[1], link), observed=["y"], method=method)

        def run(program=program):
            posterior = program(data)
            assert np.isfinite(posterior.log_evidence)  # which waits for the result
            return posterior

        posterior, seconds = run(), cpu(run)
        if not posterior.converged:
            raise SystemExit(f"{name}: {posterior.diagnosis}")
        theirs, their_seconds = INFERNET[rows, columns].get(name, (np.nan, np.nan))
        each = seconds / posterior.iterations
        lines.append(
            [name, theirs, posterior.iterations, 1e3 * their_seconds, 1e3 * seconds, their_seconds / seconds,
             1e3 * each, each / blas, posterior.log_evidence]
        )  # fmt: skip
    title = f"{rows} rows, {columns} features (two products by BLAS: {1e3 * blas:.3g} ms)"
    names = ["", "their sweeps", "ours", "their ms", "ours", "ratio", "ms a sweep", "over BLAS", "log evidence"]
    common.table(title, names, lines)
    return {"title": title, "rows": lines}


def main():
    arguments = common.options(__doc__).parse_args()
    sizes = [(1000, 50)] if arguments.quick else list(INFERNET)
    found = [contest(read(arguments.data, *size), *size) for size in sizes]
    common.save("logistic_speed", comparisons=found)


if __name__ == "__main__":
    main()
