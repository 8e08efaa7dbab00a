"""Expression in breast cancer: a tenth of the entries held out (X-6, K-27, K-29; thesis section 3.3.4).

226 genes, 251 individuals, genes about their means. Ten masks; the last 100 sweeps for predictions. The papers run 3000
sweeps and found that FA overfits from 20 to 40 factors, which AFA prevents; SFA is above AFA unless it underfits; NSFA
is as good as the best SFA without choosing a number; Fokoue (K = 20) comes close to it with a rate d of 1e-4; BFRM is
noticeably worse than other sparse models. They say that FA costs 25 ms a sweep and factor, SFA just over twice that.
The reference runs are those of the authors' program on three other masks (300 sweeps, too few for births).

    python benchmarks/nsfa/breast.py --data DIR [--sweeps 1500] [--quick] [--seed 0] [--out DIR]
"""

import common

# isort: split
import experiments
import heldout
import numpy as np
import sets

from cavity.models.sparse import plot_count, plot_scores, plot_sparsity
from cavity.models.sparse.settings import family

REFERENCE = "Held-out log density per entry of one chain, and that of a run of the authors' program."
PAPERS = {
    "NSFA": "as the best SFA; between SFA at 15 and 20 in time",
    "FA, K = 20": "25 ms per sweep and factor: 500 ms",
    "FA, K = 40": "overfits; 1000 ms",
    "Fokoue d = 0.0001, K = 20": "the best d",
}


def models(sizes, rates):
    """SFA at these numbers of factors, other finite models at the first of them, Fokoue's at these rates, and NSFA."""
    few = {"FA": sizes[:3], "AFA": sizes[:3], "SFA": sizes, "BFRM-like": sizes[1:3]}
    names = {"FA": "fa", "AFA": "afa", "SFA": "sfa", "BFRM-like": "bfrm"}
    found = {f"{name}, K = {size}": family(names[name], size) for name, some in few.items() for size in some}
    found |= {f"Fokoue d = {rate:g}, K = 20": family("fokoue", 20, element=(1.0, rate)) for rate in rates}
    return found | common.NONPARAMETRIC


def on_reference_masks(values, arguments, sweeps, finite):
    """NSFA and the best finite sparse model on the masks of the reference runs: lines of a table."""
    lines = []
    for number, reference in enumerate(sets.references("breast")):
        run = common.sample(values, family("nsfa"), arguments.seed, sweeps, 100, held_out=reference.held_out)
        other = common.sample(values, finite, arguments.seed, sweeps, 100, held_out=reference.held_out)
        numbers = [run.score, other.score, reference.score, float(run.factors.mean()), reference.factors]
        lines.append([f"mask {number}", *numbers])
    return lines


def over_sweeps(values, mask, arguments, sweeps):
    """Numbers of factors and shares of zeros over whole chains, from principal components and from no factor."""
    counts, zeros = [], []
    for start in ("components", "empty"):
        run = common.sample(values, family("nsfa", start=start), arguments.seed, sweeps, sweeps, held_out=mask)
        counts.append(run.factors[0])
        chain = [run.found.loading(0, draw) for draw in range(0, sweeps, 5)]
        zeros.append(np.array([np.mean(loading == 0.0) if loading.size else 1.0 for loading in chain]))
    return counts, zeros


def main():
    parser = common.options(__doc__)
    parser.add_argument("--sweeps", type=int, default=1500, help="of each chain")
    parser.add_argument("--masks", type=int, default=10)
    parser.add_argument("--sizes", type=int, nargs="+", default=(10, 20, 40, 60, 80), help="numbers of factors")
    arguments = parser.parse_args()
    sweeps, splits = (200, 1) if arguments.quick else (arguments.sweeps, arguments.masks)
    sizes, rates = ((5, 20), (1e-4,)) if arguments.quick else (arguments.sizes, (1e-4, 1e-2, 1.0))
    page = experiments.report("nsfa_breast", arguments, seed=arguments.seed, sweeps=sweeps, masks=splits)
    values = sets.breast(arguments)
    hidden = heldout.masks(values.shape, splits, arguments.seed)
    every = models(sizes, rates)
    found = heldout.compare(values, every, hidden, arguments.seed, sweeps)
    heldout.show(f"Breast cancer, {splits} masks: held-out log density per entry", found, "NSFA", PAPERS, page)

    finite = heldout.best(found, "SFA")
    lines = on_reference_masks(values, arguments, sweeps, every[finite])
    if lines:
        columns = ["", "NSFA", finite, "reference", "K", "K of reference"]
        experiments.table("The masks of the reference runs", columns, lines, page, REFERENCE)

    counts, zeros = over_sweeps(values, hidden[0], arguments, sweeps)
    order = sorted(found, key=lambda name: -np.median(found[name]["score"]))
    figures = {
        "breast": plot_scores({name: found[name]["score"] for name in order}, title="Breast cancer"),
        "breast_count": plot_count(counts, warmup=sweeps // 2, title="NSFA from components and from no factor"),
        "breast_zeros": plot_sparsity(zeros, warmup=len(zeros[0]) // 2, title="NSFA"),
    }
    common.save(
        arguments, "breast", figures, sweeps=sweeps, found=found, papers=PAPERS, references=lines, best=finite,
        counts=counts, zeros=zeros,
    )  # fmt: skip


if __name__ == "__main__":
    main()
