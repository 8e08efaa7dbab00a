"""Shards on a simulated clock: prediction, time and mixing by the number of workers and of sweeps between messages.

Block images in a full binary tree of 1, 7, 31 and 127 workers, as in figures 5.6 and 5.7 of the thesis; then 16 workers
beside one, and 16 of which one is slow: all wait for each other, nobody does, and with a window. All of these go on
from one run of one worker that had settled, with several keys; last, what one worker and 16 find from nothing. All work
is done by one core; the clock says what workers of their own would take, with the seconds that a row and a feature take
measured here, and messages of a network that is named.
"""

import common

# isort: split
import time

import jax
import numpy as np
import sets

from cavity.models.buffet.parallel import Costs, effective_draws, sample_in_turns
from cavity.models.buffet.parallel.tree import depth

WORKERS = (1, 7, 31, 127)
LATENCY, FAR = 5e-5, 1e-3  # seconds of a message: within a cluster, as in docs/scale.md, and of the thesis' order
COLUMNS = ("", "held out", "less one worker", "features", "a sweep, ms", "times as fast", "at 1 ms", "ESS a round")


def parts_of(rows, workers, seed):
    """Shards, and a tenth of their entries held out."""
    values, _ = sets.images(rows, seed)
    values = values - values.mean(axis=0)
    held = np.random.default_rng(seed).random(values.shape) < 0.1
    return np.array_split(values, workers), np.array_split(held, workers)


def settled(arguments):
    """A run of one worker from nothing, and the seconds of a row and a feature in what it does next."""
    parts, held = parts_of(arguments.rows, 1, arguments.seed)
    asked = {"inner": 5, "window": 0.0, "costs": Costs(), "held_out": held}
    key, half = jax.random.key(arguments.seed), arguments.settle // 2
    first = sample_in_turns(parts, key, half, warmup=arguments.settle - half, **asked)
    again = sample_in_turns(parts, jax.random.fold_in(key, 1), 2, start=first, **asked)  # compiles what is timed next
    began = time.process_time()
    found = sample_in_turns(parts, jax.random.fold_in(key, 2), 10, start=again, **asked)
    return found, (time.process_time() - began) / (50 * arguments.rows * (1.0 + found["number_of_features"].mean()))


def measured(arguments, start, workers, costs, inner=5, rounds=None, window=0.0):
    """One configuration by several keys: its numbers for the table."""
    parts, held = parts_of(arguments.rows, workers, arguments.seed)
    asked = {"held_out": held, "inner": inner, "costs": costs, "window": window, "start": start}
    rounds = arguments.outer if rounds is None else rounds
    warmup, found = rounds // 4, []
    for repeat in range(arguments.repeats):
        key = jax.random.key(1000 + repeat)
        found.append(sample_in_turns(parts, key, rounds - warmup, warmup=warmup, **asked))
    sweeps = np.mean([each.turns.sum() for each in found]) * inner / workers
    seconds = np.mean([each.seconds for each in found])
    later = 2.0 * depth(workers) * (FAR - costs.latency) * rounds if window == 0.0 else np.nan
    noise = np.log([each["noise_precision"] for each in found])
    return {
        "scores": [each.score for each in found],
        "features": float(np.mean([each["number_of_features"].mean() for each in found])),
        "noise": float(np.exp(noise).mean()),
        "sweep": float(seconds / sweeps),
        "far": float((seconds + later) / sweeps),
        "effective": float(effective_draws(noise) / noise.size),
    }


def line(name, found, serial):
    """Cells of one configuration."""
    scores, others = np.array(found["scores"]), np.array(serial["scores"])
    off, error = scores.mean() - others.mean(), np.sqrt(sum(each.var(ddof=1) / each.size for each in (scores, others)))
    apart = "-" if found is serial else f"{off:+.4f} ({error:.4f})"
    ratios = serial["sweep"] / found["sweep"], serial["far"] / found["far"]
    cells = found["features"], 1e3 * found["sweep"], *ratios, found["effective"]
    return [name, f"{scores.mean():.4f}", apart, *(common.shown(each, 3) for each in cells)]


def noted(arguments, *more):
    """What both tables say of themselves."""
    told = (
        f"{arguments.rows} images, {arguments.outer} rounds of 5 sweeps where not said otherwise, of which the last "
        f"three quarters count; {arguments.repeats} keys, all from one settled run. Nats for each entry that is held "
        "out, and how far that is from one worker, with the error of that difference over keys; milliseconds of the "
        f"simulated clock for a sweep of all rows, with messages of {1e3 * LATENCY} ms, and how many times as fast "
        "that is as one worker, also with messages of 1 ms; effective draws of the noise for each round."
    )
    return " ".join([told, *more])


def by_workers(report, arguments, start, step):
    """Workers, and sweeps between messages."""
    costs = Costs(step=step, latency=LATENCY)
    asked = {f"{workers} workers": (workers, 5) for workers in arguments.workers}
    asked |= {f"{arguments.many} workers, {inner} a round": (arguments.many, inner) for inner in arguments.inner}
    found = {name: measured(arguments, start, workers, costs, inner) for name, (workers, inner) in asked.items()}
    serial = found[f"{arguments.workers[0]} workers"]
    lines = [line(name, each, serial) for name, each in found.items()]
    thesis = (
        "The thesis: the same prediction for all, less time up to 31 workers, and at 31 with 20 sweeps .75 effective "
        "draws a round."
    )
    report.table("Configurations (figures 5.6, 5.7)", noted(arguments, thesis), COLUMNS, lines, found)
    return serial


def by_sixteen(report, arguments, start, step, serial):
    """16 workers beside one; one of them slow, and who waits for it."""
    costs = Costs(step=step, latency=LATENCY)
    slow = Costs(step=step, latency=LATENCY, slow={15: 4.0})
    turn = 5 * step * -(-arguments.rows // 16) * (1.0 + serial["features"])
    found = {
        "16 workers": measured(arguments, start, 16, costs),
        "16, one slow, all wait": measured(arguments, start, 16, slow),
        "16, one slow, nobody waits": measured(arguments, start, 16, slow, window=None),
        "16, one slow, a window": measured(arguments, start, 16, slow, rounds=arguments.outer // 2, window=4.0 * turn),
    }
    lines = [line(name, each, serial) for name, each in {"1 worker": serial, **found}.items()]
    waits, others = found["16, one slow, all wait"], ("16, one slow, nobody waits", "16, one slow, a window")
    gains = " and ".join(f"{waits['sweep'] / found[name]['sweep']:.2f}" for name in others)
    asked = (
        "The slow worker takes four times as long; the window is as long as its turn. Who does not wait has more turns "
        f"from the fast workers: {gains} times as many sweeps a second, without waiting and with a window, as where "
        "all wait. Asked: 12 times as fast with 16 workers, held-out density within .01 of one worker. The thesis: "
        "1.64 times as fast without waiting."
    )
    report.table("Sixteen workers", noted(arguments, asked), COLUMNS, lines, found)


def from_nothing(report, arguments):
    """One worker and 16 without a start."""
    found, lines = {}, []
    for workers in (1, 16):
        parts, held = parts_of(arguments.cold, workers, arguments.seed)
        half = arguments.settle // 2
        asked = {"warmup": arguments.settle - half, "inner": 5, "window": 0.0, "costs": Costs(), "held_out": held}
        runs = [sample_in_turns(parts, jax.random.key(key), half, **asked) for key in range(arguments.repeats)]
        name = "1 worker" if workers == 1 else f"{workers} workers"
        scores, counts = [each.score for each in runs], [float(each["number_of_features"].mean()) for each in runs]
        found[name] = {"scores": scores, "features": counts}
        shown = (" ".join(f"{each:.3f}" for each in scores), " ".join(f"{each:.1f}" for each in counts))
        lines.append([name, f"{np.mean(scores):.4f}", *shown])
    note = (
        f"{arguments.cold} images, {arguments.settle} rounds of 5 sweeps from no feature at all, the last half; nats "
        "for each entry that is held out, their mean and that of each key, and how many features. Chains end where "
        "they end: with a shape in two features, say, which later sweeps seldom mend, of one worker as of many."
    )
    report.table("From nothing", note, ("", "held out", "by key", "features"), lines, found)


def main():
    parser = common.options(__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=5000, help="the thesis learns from 5000")
    parser.add_argument("--settle", type=int, default=60, help="rounds of 5 sweeps of the run that all go on from")
    parser.add_argument("--outer", type=int, default=32, help="rounds of 5 sweeps; the thesis has 1000 from nothing")
    parser.add_argument("--repeats", type=int, default=3, help="keys of each configuration")
    parser.add_argument("--cold", type=int, default=1000, help="images where nothing is known")
    parser.add_argument("--workers", type=int, nargs="*", default=list(WORKERS))
    parser.add_argument("--many", type=int, default=31, help="workers with other numbers of sweeps between messages")
    parser.add_argument("--inner", type=int, nargs="*", default=[1, 20], help="sweeps between messages, also 5")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.rows, arguments.outer, arguments.repeats, arguments.cold = 127, 16, 2, 127
        arguments.workers, arguments.many, arguments.inner = [1, 7], 7, [10]
    start, step = settled(arguments)
    settings = {name: getattr(arguments, name) for name in ("rows", "settle", "outer", "repeats", "cold")}
    report = common.report("configurations", arguments, **settings, step=float(f"{step:.2g}"))
    serial = by_workers(report, arguments, start, step)
    by_sixteen(report, arguments, start, step, serial)
    from_nothing(report, arguments)


if __name__ == "__main__":
    main()
