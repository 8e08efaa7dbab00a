"""Whether chains of nonparametric sparse factor analysis on expression in breast cancer meet: factors by sweep.

226 genes, 251 individuals, as `breast.py` has them. Chains begin without factors and propose whole ones twenty times a
sweep (decision 0040). Asked is a split R-hat of the number of factors under 1.05; the papers run 3000 sweeps.

    python benchmarks/nsfa/meeting.py --data DIR [--sweeps 16000] [--chains 4] [--seed 0] [--quick]
"""

import common

# isort: split
import arviz
import experiments
import numpy as np
import sets

from cavity.models.sparse import plot_count
from cavity.models.sparse.settings import family


def main():
    parser = common.options(__doc__)
    parser.add_argument("--sweeps", type=int, default=16_000, help="of each chain")
    parser.add_argument("--chains", type=int, default=4)
    arguments = parser.parse_args()
    sweeps = 400 if arguments.quick else arguments.sweeps
    page = experiments.report("nsfa_meeting", arguments, seed=arguments.seed, sweeps=sweeps, chains=arguments.chains)
    settings = family("nsfa", start="empty", shared=20)
    runs = [
        common.sample(sets.breast(arguments), settings, arguments.seed + chain, sweeps, sweeps, keep="summaries")
        for chain in range(arguments.chains)
    ]
    counts = np.concatenate([run.factors for run in runs]).astype(float)

    parts = np.split(counts, 8, axis=1)
    columns = ["sweeps to", *(f"chain {chain + 1}" for chain in range(len(counts)))]
    lines = [[str((i + 1) * sweeps // 8), *part.mean(axis=1)] for i, part in enumerate(parts)]
    experiments.table("Mean number of factors by eighths of the chains", columns, lines, page)

    windows = {"the first quarter, its second half": (1, 2), "the second quarter": (2, 4), "the second half": (4, 8)}
    windows |= {"the last three eighths": (5, 8), "the last quarter": (6, 8)}
    lines = []
    for name, (first, last) in windows.items():
        window = counts[:, first * sweeps // 8 : last * sweeps // 8]
        lines.append([name, float(arviz.rhat(window)), float(arviz.ess(window)), float(window.std(axis=1).mean())])
    columns = ["sweeps", "R-hat", "effective draws", "deviation within chains"]
    experiments.table("Do chains meet in their number of factors", columns, lines, page, "Ranks, split; asked: 1.05.")
    page.facts("cost", **{"CPU seconds of a chain": float(np.mean([run.cpu for run in runs]))})
    common.save(
        arguments, "meeting", {"meeting": plot_count(list(counts), warmup=sweeps // 2, title="NSFA")}, counts=counts
    )


if __name__ == "__main__":
    main()
