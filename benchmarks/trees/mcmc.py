"""Markov chains over trees: held-out log density against the reference programs, and what proposals are worth.

    python benchmarks/trees/mcmc.py --data DIR [--backend jax] [--quick]

DIR holds `ddt_data` (splits of 28 rows) and `ddt_fbm`, `pydt` (what the programs of the papers' authors reached on
them, and after how much CPU time). Compilation, at most some ten seconds in JAX, is not charged.
"""

# isort: off
import common
# isort: on

import csv
import json
import time

import jax
import numpy as np
from scipy.special import logsumexp

from cavity.models.trees.chains.hyper import Hyperpriors
from cavity.models.trees.chains.sampler import Sampler
from cavity.models.trees.chains.settings import Settings
from cavity.models.trees.divergence import Divergence
from cavity.models.trees.likelihoods.table import Data
from cavity.models.trees.predict import log_predictive
from cavity.models.trees.prior import TreePrior
from cavity.models.trees.shapes.sample import sample_data

FIXED = Settings(learn=frozenset(), start="build")
LEARNED = Settings(learn=frozenset({"variance", "rate"}), per_column=True, shared_rate=(1.0, 1.0))
BINARY = Settings(
    learn=frozenset({"variance"}), per_column=True, shared_rate=(2.0, 8.0), variance=4.0,
    priors=Hyperpriors(precision=(2.0, 0.25)),
)  # fmt: skip
PYDT = Settings(learn=frozenset({"rate"}), prior=TreePrior(1.5))
CASES = {
    "ddt_synth_fixed": ("ddt_synth", FIXED),
    "ddt_synth_learned": ("ddt_synth", LEARNED),
    "wdbc10_fixed": ("wdbc10", FIXED),
    "wdbc10_learned": ("wdbc10", LEARNED),
    "animals28": ("animals", BINARY),
}
FILES = {
    "ddt_synth": ("ddt_synth_train_200x10", "ddt_synth_test_28x10"),
    "wdbc10": ("wdbc10_train_200x10", "wdbc10_test_28x10"),
    "animals": ("animals_train_28x102", "animals_test_5x102"),
}
TREES = 100  # in the average


def chain(sampler, key, budget, test, times):
    """Runs for a CPU budget; held-out densities of the single trees at some times, and of an average over the later
    four fifths of the run. Prediction is not charged."""
    state = sampler.init(jax.random.fold_in(key, 0))
    sampler.step(jax.random.fold_in(key, 1), state)  # compiles
    begun = time.process_time()
    state, used, sweep, kept, single = sampler.init(jax.random.fold_in(key, 0)), 0.0, 0, [], []
    used, waiting = time.process_time() - begun, [t for t in times if t <= budget]
    while used < budget:
        begun = time.process_time()
        state = sampler.step(jax.random.fold_in(key, sweep + 1), state)
        used, sweep = used + time.process_time() - begun, sweep + 1
        kept.append((used, state))
        while waiting and used >= waiting[0]:
            single.append((waiting.pop(0), float(log_predictive(sampler.fitted(state), test).mean())))
    late = [state for at, state in kept if at > 0.2 * budget]
    chosen = [late[i] for i in np.unique(np.linspace(0, len(late) - 1, TREES).astype(int))]
    each = np.stack([log_predictive(sampler.fitted(one), test) for one in chosen])
    rows = logsumexp(each, axis=0) - np.log(len(each))
    acceptance = state.accepted / np.maximum(state.proposed, 1.0)
    return {
        "sweeps": sweep, "cpu": used, "single": single, "average": float(rows.mean()),
        "error": float(rows.std(ddof=1) / np.sqrt(len(rows))), "acceptance": acceptance.tolist(),
        "log_joint": float(np.mean([sampler.log_joint(one) for one in chosen[len(chosen) // 2 :]])),
    }  # fmt: skip


def held_out(arguments, chains):
    """All splits."""
    data, reference = common.folder(arguments, "ddt_data"), common.folder(arguments, "ddt_fbm")
    summary = {entry["run"]: entry for entry in json.loads((reference / "summary.json").read_text())}
    found, rows = {}, []
    for name, (files, settings) in CASES.items():
        train, test = (np.loadtxt(data / f"{file}.csv", delimiter=",") for file in FILES[files])
        sampler = Sampler(Data(train, files == "animals"), settings, arguments.backend)
        with (reference / f"{name}_1_curve.csv").open() as file:
            curve = [
                (float(line["cpu_s"]), float(line["heldout_logdens_single_tree"])) for line in csv.DictReader(file)
            ]
        theirs = [summary[f"{name}_{i}"] for i in (1, 2, 3)]
        budget = np.mean([entry["user_cpu_s"] for entry in theirs]) * (0.1 if arguments.quick else 1.0)
        ours = [
            chain(sampler, jax.random.key(arguments.seed + i), budget, test, [t for t, _ in curve])
            for i in range(chains)
        ]
        found[name] = ours
        average = np.mean([entry["heldout_logdens_averaged"] for entry in theirs])
        mine = np.mean([one["average"] for one in ours])
        rows.append(
            [name, budget, average, mine, (mine - average) / test.shape[1], ours[0]["sweeps"], *ours[0]["acceptance"]]
        )
        common.table(
            f"{name}: held-out log density per row of the single tree after so many CPU seconds",
            ["CPU s", "reference", *(f"chain {i + 1}" for i in range(chains))],
            [[f"{at:.2f}", value, *(dict(one["single"]).get(at, float("nan")) for one in ours)] for at, value in curve],
        )
        print("  averages of chains:", *(f"{one['average']:.3f}" for one in ours), "log joint",
              *(f"{one['log_joint']:.1f}" for one in ours), flush=True)  # fmt: skip
    common.table(
        f"Held-out log density per row, mean over chains, average of {TREES} trees after the same CPU time",
        ["split", "CPU s", "reference", "ours", "per row and column", "sweeps", "accept prior", "accept scored"],
        rows,
    )
    return found


def efficiency(arguments):
    """Effective draws per CPU second of the log joint and of the slowest of 20 times at which two leaves part."""
    import arviz

    rows, found = [], {}
    for columns in (5,) if arguments.quick else (2, 5, 10, 50):
        _, values = sample_data(TreePrior(divergence=Divergence(1.0)), 200, columns, jax.random.key(arguments.seed))
        pairs = np.random.default_rng(0).integers(0, 200, (20, 2))
        for kind, share, moves in (("scored", 1.0, 1.0), ("prior", 0.0, 4.0), ("mixture", 0.125, 4.0)):
            settings = Settings(learn=frozenset(), share_scored=share, moves=moves, start="build")
            sampler = Sampler(Data(values), settings, arguments.backend)
            key = jax.random.key(arguments.seed)
            state = sampler.step(key, sampler.init(key))
            used, traces = 0.0, []
            budget = 2.0 if arguments.quick else 20.0
            while used < 1.5 * budget:
                begun = time.process_time()
                state = sampler.step(jax.random.fold_in(key, len(traces)), state)
                used += time.process_time() - begun
                if used > 0.5 * budget:
                    traces.append([sampler.log_joint(state), *parting_times(state.arrays, pairs)])
            sizes = [float(arviz.ess(trace[None])) / budget for trace in np.array(traces).T if np.ptp(trace) > 0.0]
            rows.append([f"D={columns} {kind}", sizes[0], float(np.median(sizes[1:])), min(sizes[1:])])
            found[rows[-1][0]] = sizes
            print(rows[-1], flush=True)
    common.table("Effective draws per CPU second, N=200", ["", "log joint", "median time", "slowest time"], rows)
    return found


def parting_times(arrays, pairs):
    """Time at which the leaves of each pair part."""
    result = []
    for one, two in pairs:
        above = set()
        while one >= 0:
            above.add(int(one))
            one = arrays.parent[one]
        while int(two) not in above:
            two = arrays.parent[two]
        result.append(-np.expm1(-arrays.depth[two]))
    return result


def main():
    parser = common.options(__doc__.splitlines()[0])
    parser.add_argument("--only", choices=("held-out", "efficiency"))
    arguments = parser.parse_args()
    found = {}
    if arguments.only != "efficiency":
        found["held_out"] = held_out(arguments, 1 if arguments.quick else 3)
    if arguments.only != "held-out":
        found["efficiency"] = efficiency(arguments)
    common.save(f"mcmc_{arguments.backend}", **found)


if __name__ == "__main__":
    main()
