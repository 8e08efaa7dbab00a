"""Data on the connectivity of E. coli: errors of loadings and the number of factors (X-2, X-3; thesis section 3.3.1).

100 genes, 16 transcription factors, 100 samples, a signal-to-noise ratio of 10; ten data sets, 1000 sweeps each, errors
over the last ten. The error is that of the papers, `1 / (D K) sum over k of min over j of |G_k -+ H_j|^2`, here with
signs removed, which they do not say; in the scale of the model (factors of prior variance one) and in one where factors
have mean square one in truth and estimate; one to one, a factor of the estimate stands for one true factor only. None
of these punishes spurious factors, and so F1 of the active loadings and the error of G X stand beside them. The papers
give no numbers for errors, only their order: FA worst, worse with more factors; AFA, Fokoue, sparse PCA; BFRM better
and improving with more factors; SFA, and NSFA an order of magnitude below the others.

    python benchmarks/nsfa/connectivity.py --data DIR [--quick] [--seed 0] [--out DIR]
"""

import common

# isort: split
import numpy as np
import sets
import sparse_pca

from cavity.engine.answers.loadings import reconstruction_error, support_scores, unit_factors
from cavity.models.sparse import plot_count, plot_scores
from cavity.models.sparse.settings import family

MODELS = {"FA": "fa", "AFA": "afa", "Fokoue": "fokoue", "BFRM-like": "bfrm", "SFA": "sfa"}
SIZES = (10, 16, 20, 30)
COLUMNS = ("error", "unit factors", "one to one", "F1 of active", "of G X")
NSFA = common.NONPARAMETRIC
PAPERS = {
    "NSFA": "thesis: K 16.28 (0.54), mass 2.78 (0.66); report: K 18.3 (2.0)",
    "NSFA, mass 1": "thesis: K 16.08 (0.29); report: K 16.1 (1.46)",
}


def errors_of(problem, loading, factor):
    """Of an estimate: in the model's scale, in unit factors, one to one, and the F1 of active loadings."""
    truth, found = unit_factors(problem.loading, problem.factor), unit_factors(loading, factor)
    return (
        reconstruction_error(problem.loading, loading),
        reconstruction_error(truth.loading, found.loading),
        reconstruction_error(truth.loading, found.loading, one_to_one=True),
        support_scores(problem.loading, (loading != 0.0).astype(float)).f1,
    )


def error_of_signal(problem, reconstruction):
    """Mean squared error of G X over the variance of the noise: blind to order, signs, scales and rotations."""
    signal = problem.loading @ problem.factor
    return float(np.mean((reconstruction - signal) ** 2) / np.mean((problem.values - signal) ** 2))


def by_chain(problem, settings, seed, sweeps):
    """Errors over the last ten sweeps, that of the signal and numbers of factors over the last half, and the run."""
    run = common.sample(problem.values, settings, seed, sweeps, sweeps // 2)
    late = range(sweeps // 2 - 10, sweeps // 2)
    errors = [errors_of(problem, run.found.loading(0, draw), run.found.factor(0, draw)) for draw in late]
    signal = error_of_signal(problem, run.found.summary.reconstruction)
    return (*np.mean(errors, axis=0), signal), run.factors[0], run


def errors_of_all(problems, sizes, sweeps, seed):
    """{model: (data sets, 5) errors}, {model: (data sets, sweeps) numbers of factors}, {model: CPU ms for a sweep}."""
    errors, counts, speed = {}, {}, {}
    models = {f"{name}, K = {size}": family(model, size) for name, model in MODELS.items() for size in sizes} | NSFA
    for name, settings in models.items():
        runs = [by_chain(problem, settings, seed + number, sweeps) for number, problem in enumerate(problems)]
        errors[name], counts[name] = np.array([run[0] for run in runs]), np.array([run[1] for run in runs])
        speed[name] = float(np.median([run[2].warm for run in runs]))
        print(f"{name}: error {common.middle(errors[name][:, 0])}, K {common.middle(counts[name].mean(1))}", flush=True)
    for size in sizes:
        found = []
        for number, problem in enumerate(problems):
            components = sparse_pca.sparse_components(problem.values, size, seed=seed + number)
            signal = components.loading @ components.factor + components.mean[:, None]
            scores = errors_of(problem, components.loading, components.factor)
            found.append((*scores, error_of_signal(problem, signal)))
        errors[f"sparse PCA, K = {size}"] = np.array(found)
    return errors, counts, speed


def posterior_of_count(problem, seed, sweeps):
    """One data set for longer (X-3): numbers of factors and masses over all sweeps, mass 1 and learned."""
    found = {name: common.sample(problem.values, NSFA[name], seed, sweeps, sweeps, keep="summaries") for name in PAPERS}
    return {name: (run.factors[0], run.found["mass"][0]) for name, run in found.items()}


def main():
    arguments = common.options(__doc__).parse_args()
    sets_, sweeps, longer = (2, 200, 400) if arguments.quick else (10, 1000, 10_000)
    sizes = (16, 20) if arguments.quick else SIZES
    active = sets.connectivity(arguments)
    randoms = [np.random.default_rng((arguments.seed, number)) for number in range(sets_)]
    problems = [sets.regulated(active, random) for random in randoms]
    errors, counts, speed = errors_of_all(problems, sizes, sweeps, arguments.seed)
    rows = []
    for name, found in sorted(errors.items(), key=lambda item: np.median(item[1][:, 0])):
        factors = common.middle(counts[name].mean(axis=1)) if name in counts else ""
        rows.append([name, *np.median(found, axis=0), factors, speed.get(name, ""), PAPERS.get(name, "")])
    columns = ["model", *COLUMNS, "K (s.e.)", "ms/sweep", "papers"]
    common.table(f"Medians over {sets_} data sets of {sweeps} sweeps", columns, rows)

    posterior, lines = posterior_of_count(problems[0], arguments.seed, longer), []
    for name, (factors, mass) in posterior.items():
        late, m = factors[-(longer // 10) :], mass[-(longer // 10) :]
        lines.append([name, late.mean(), late.std(), m.mean(), m.std(), PAPERS[name]])
    common.table(f"One data set, the last tenth of {longer} sweeps", ["", "K", "sd", "mass", "sd", "papers"], lines)

    ones = [sets.regulated(active, random, ones=True) for random in randoms]
    runs = [by_chain(problem, NSFA["NSFA"], arguments.seed, sweeps) for problem in ones]
    of_ones = np.array([run[1] for run in runs])
    share, mean = float(np.mean(of_ones >= 16)), common.middle(of_ones.mean(axis=1))
    print(f"\nAll loadings 1: K {mean}, at least 16 in a share of {share:.3f} of the sweeps (papers: always)")

    scores = {row[0]: errors[row[0]][:, 0] for row in rows}
    figure = plot_scores(scores, label="error of the loadings", title="Connectivity of E. coli, generated data")
    figure.axes[0].set_xscale("log")
    figures = {
        "connectivity": figure,
        "connectivity_count": plot_count([each for each, _ in posterior.values()], warmup=longer // 10, truth=16.0),
    }
    common.save(
        arguments, "connectivity", figures, columns=COLUMNS, errors=errors,
        factors={name: found.mean(axis=1) for name, found in counts.items()}, milliseconds=speed, papers=PAPERS,
        posterior={name: np.bincount(found[0][-(longer // 10) :]) for name, found in posterior.items()},
        ones=of_ones.mean(axis=1),
    )  # fmt: skip


if __name__ == "__main__":
    main()
