"""Data of the size of the prostate set, 12,557 genes and 171 individuals (X-7, K-28; thesis section 3.3.5).

The data of Yu et al. (2004) cannot be had: these are a draw of the model with 12 factors, in which most genes are noise
only. A tenth of the entries is held out. The papers ran 1000 sweeps; NSFA had a median of 12 factors, was better than
any finite model, SFA slightly worse than AFA, and 1000 sweeps of NSFA took just under 8 hours (28.8 s a sweep).

    python benchmarks/nsfa/prostate.py [--sweeps 200] [--quick] [--seed 0] [--out DIR]
"""

import common

# isort: split
import heldout
import numpy as np
import sets

from cavity.engine.answers.loadings import match_factors
from cavity.models.sparse import plot_count
from cavity.models.sparse.settings import family

PAPERS = {"NSFA": "median K 12, best; 28,800 ms/sweep"}


def main():
    parser = common.options(__doc__)
    parser.add_argument("--sweeps", type=int, default=200, help="of each chain")
    arguments = parser.parse_args()
    sweeps, rows, splits = (60, 1000, 1) if arguments.quick else (arguments.sweeps, 12557, 2)
    sizes, last = ((12,), 20) if arguments.quick else ((8, 12, 20), sweeps // 2)
    problem = sets.prostate(np.random.default_rng(arguments.seed), rows)
    active = (problem.loading != 0.0).sum(axis=0)
    print(f"{rows} x 171, active genes of the factors: {active}")
    hidden = heldout.masks(problem.values.shape, splits, arguments.seed)
    models = {
        f"{name}, K = {size}": family(model, size) for name, model in (("AFA", "afa"), ("SFA", "sfa")) for size in sizes
    }
    models["NSFA"] = family("nsfa")
    found = heldout.compare(problem.values, models, hidden, arguments.seed, sweeps, last, keep="summaries")
    heldout.show(f"{splits} masks, {sweeps} sweeps: held-out log density per entry", found, "NSFA", PAPERS)

    whole = common.sample(problem.values, family("nsfa"), arguments.seed, sweeps, sweeps, keep="summaries")
    matched = match_factors(problem.loading, whole.found.last(0).loading)
    counts, late = whole.factors, whole.factors[:, -last:]
    print(
        f"\nAll data: K {late.mean():.2f}, {whole.warm:.1f} ms/sweep, {whole.found.compilations} compilations, "
        f"{whole.cpu:.1f} CPU s in all; cosines of the {len(active)} true factors from {matched.correlation.min():.3f}"
    )
    figures = {"prostate_count": plot_count(counts, truth=float(len(active)), title=f"{rows} x 171")}
    common.save(
        arguments, "prostate", figures, sweeps=sweeps, found=found, papers=PAPERS, active=active, counts=counts,
        warm=whole.warm, cpu=whole.cpu, cosines=matched.correlation,
    )  # fmt: skip


if __name__ == "__main__":
    main()
