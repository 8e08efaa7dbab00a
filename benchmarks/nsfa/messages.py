"""NSFA by messages beside NSFA by Markov chains: held-out entries and time (the model of models/nsfa.py, by VMP).

Data on the connectivity of E. coli, E. coli over time, breast cancer; a tenth of the entries held out, the same for
both. Chains: the last 100 of `--sweeps`. Messages: the marginals of the missing entries, which are Gaussians with the
expected noise, for a number of factors that is cut off; CPU seconds of a second call, which compiles nothing, and of
the first. To show: within 2 per cent of the chains' score in under a tenth of their time.

    python benchmarks/nsfa/messages.py --data DIR [--quick] [--seed 0] [--out DIR]
"""

import common

# isort: split
import time

import heldout
import numpy as np
import sets

import cavity as cv
from cavity.models.nsfa import nsfa, rows_in_use
from cavity.models.sparse.settings import family


def by_messages(values, mask, factors, **options):
    """Score, factors in use, iterations, CPU seconds of a first and of a second call."""
    model, seconds = nsfa(factors), []
    for _ in range(2):
        begun = time.process_time()
        found = cv.infer(model, {"y": np.where(mask, np.nan, values)}, method="vmp", progress=False, **options)
        mean, variance = found["y"].mean[mask], found["y"].variance[mask]  # waits for the results
        seconds.append(time.process_time() - begun)
    score = np.mean(-0.5 * np.log(2.0 * np.pi * variance) - 0.5 * (values[mask] - mean) ** 2 / variance)
    return float(score), int((rows_in_use(found) > 0.5).sum()), int(found.iterations), *seconds


def main():
    parser = common.options(__doc__)
    parser.add_argument("--sweeps", type=int, default=1000, help="of the chains")
    arguments = parser.parse_args()
    active = sets.connectivity(arguments)
    problems = {
        "connectivity": (sets.regulated(active, np.random.default_rng((arguments.seed, 0))).values, (20,)),
        "E. coli over time": (sets.ecoli(arguments), (5, 10)),
    }
    if not arguments.quick:
        problems["breast cancer"] = sets.breast(arguments), (20, 40)
    sweeps, kept = 300 if arguments.quick else arguments.sweeps, {}
    for title, (values, sizes) in problems.items():
        mask = heldout.masks(values.shape, 1, arguments.seed)[0]
        run = common.sample(values, family("nsfa"), arguments.seed, sweeps, 100, held_out=mask)
        warm = 1e-3 * run.warm * sweeps
        rows = [["chains", run.score, 0.0, float(run.factors.mean()), float(sweeps), run.cpu, warm, 1.0]]
        for size in sizes:
            score, factors, iterations, first, second = by_messages(values, mask, size)
            lost = 100.0 * (run.score - score) / abs(run.score)
            rows.append([f"messages, at most {size}", score, lost, factors, iterations, first, second, second / warm])
        columns = ["", "score", "below by %", "K", "sweeps", "CPU s, first", "CPU s, warm", "of the chains"]
        common.table(f"{title}, {values.shape[0]} x {values.shape[1]}", columns, rows)
        kept[title] = rows
    common.save(arguments, "messages", sweeps=sweeps, found=kept)


if __name__ == "__main__":
    main()
