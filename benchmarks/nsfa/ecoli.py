"""Expression of E. coli over time: a tenth of the entries held out (X-5, K-26; thesis section 3.3.3).

100 genes, 23 arrays (the papers say 24; the public copy has 23). Genes are taken about their means and all divided by
the overall standard deviation. Ten masks, the last 100 sweeps for predictions. The papers run 3000 sweeps and found
that sparsity gains nothing here, that too many factors hurt, which automatic relevance and sparsity alleviate, that
about five are best, and that NSFA has a median of four. The reference runs are those of the authors' program, on three
other masks.

    python benchmarks/nsfa/ecoli.py --data DIR [--sweeps 1000] [--quick] [--seed 0] [--out DIR]
"""

import common

# isort: split
import experiments
import heldout
import numpy as np
import sets

from cavity.models.sparse import plot_count, plot_scores
from cavity.models.sparse.settings import family

REFERENCE = "Held-out log density per entry of one chain, and that of a run of the authors' program."
PAPERS = {"NSFA": "median K 4, at times 5"}


def models(sizes):
    """The finite models at these numbers of factors, and the nonparametric ones."""
    finite = {"FA": "fa", "AFA": "afa", "SFA": "sfa"}
    found = {f"{name}, K = {size}": family(model, size) for name, model in finite.items() for size in sizes}
    found |= {f"{name}, K = 5": family(model, 5) for name, model in (("Fokoue", "fokoue"), ("BFRM-like", "bfrm"))}
    return found | common.NONPARAMETRIC


def main():
    parser = common.options(__doc__)
    parser.add_argument("--sweeps", type=int, default=1000, help="of each chain")
    parser.add_argument("--masks", type=int, default=10)
    arguments = parser.parse_args()
    every = arguments.sweeps, arguments.masks, (2, 3, 4, 5, 7, 10)
    sweeps, splits, sizes = (300, 2, (2, 5)) if arguments.quick else every
    page = experiments.report("nsfa_ecoli", arguments, seed=arguments.seed, sweeps=sweeps, masks=splits)
    values = sets.ecoli(arguments)
    hidden = heldout.masks(values.shape, splits, arguments.seed)
    found = heldout.compare(values, models(sizes), hidden, arguments.seed, sweeps)
    heldout.show(f"E. coli, {splits} masks: held-out log density per entry", found, "NSFA", PAPERS, page)

    references, lines = sets.references("ecoli"), []
    for number, reference in enumerate(references):
        run = common.sample(values, family("nsfa"), arguments.seed, sweeps, 100, held_out=reference.held_out)
        lines.append([f"mask {number}", run.score, reference.score, float(run.factors.mean()), reference.factors])
    if lines:
        columns = ["", "NSFA", "reference", "K", "K of reference"]
        experiments.table("The masks of the reference runs", columns, lines, page, REFERENCE)

    whole = common.sample(values, family("nsfa"), arguments.seed, sweeps, sweeps, chains=4, keep="summaries")
    late = whole.factors[:, sweeps // 2 :]
    shares = {int(k): float(np.mean(late == k)) for k in np.unique(late)}
    rows = [["here", f"{np.median(late):.0f}", ", ".join(f"{k}: {share:.2f}" for k, share in shares.items())]]
    rows.append(["papers", "4", "at times 5"])
    note = f"Four chains of {sweeps} sweeps, the later halves."
    experiments.table("All data: number of factors", ["", "median", "share of draws"], rows, page, note)

    order = sorted(found, key=lambda name: -np.median(found[name]["score"]))
    figures = {
        "ecoli": plot_scores({name: found[name]["score"] for name in order}, title="E. coli over time"),
        "ecoli_count": plot_count(whole.factors, warmup=sweeps // 2, title="E. coli over time"),
    }
    common.save(arguments, "ecoli", figures, sweeps=sweeps, found=found, papers=PAPERS, references=lines, shares=shares)


if __name__ == "__main__":
    main()
