"""Speed of the row-parallel sweep of NSFA: beside C sites with BLAS, warm and cold, with and without missing entries.

One process, one thread, contestants in turns. Data have 15 % of the loadings and a signal four times the noise. The
number of factors of the comparator is fixed; ours may change it, and is started from the same state in every call.
"""

import common

# isort: split
import subprocess
import sys

import c_kernels
import harness
import jax
import numpy as np

from cavity.engine.support.machine_code import Kernel
from cavity.models.sparse.kernels import parallel
from cavity.models.sparse.kernels.bits import seed_of
from cavity.models.sparse.kernels.columns import draw_columns
from cavity.models.sparse.kernels.factors import sums_of
from cavity.models.sparse.state import Numbers, Observed, State, Switches

CASES = ((100, 24, 5, 0.0), (226, 251, 15, 0.0), (226, 251, 15, 0.1), (12557, 171, 12, 0.0), (12557, 171, 12, 0.1))
TARGETS = "must: 3 and 100 ms, 2.5 times C + BLAS; aim: 1 and 40 ms"
PLACES = 16
COLD = """
import time
begun = time.perf_counter()
import jax, numpy as np
from cavity.models.sparse.chains import sample_posterior
values = np.random.default_rng(0).normal(size=({rows}, {samples}))
sample_posterior(values, key=jax.random.key(0), chains=1, warmup=0, draws=1)
print(time.perf_counter() - begun, time.process_time())
"""


def problem(rows, samples, factors, share, seed=0, places=PLACES):
    """A state of our sweep with its data, and the same for the comparator."""
    random = np.random.default_rng(seed)
    loading = np.zeros((places, rows))
    loading[:factors] = random.normal(size=(factors, rows)) * (random.random((factors, rows)) < 0.15)
    factor = np.zeros((places, samples))
    factor[:factors] = random.normal(size=(factors, samples))
    values = loading.T @ factor + 0.5 * random.normal(size=(rows, samples))
    row, sample = np.nonzero(random.random(values.shape) < share)
    missing = values[row, sample].copy()
    values[row, sample] = 0.0
    state = State(
        loading, factor, np.array(factors), np.ones(places), np.zeros((0, 0)), np.zeros(0), np.full(rows, 4.0),
        np.array(2.0), np.array(1.0), np.array(1.0), np.array(1.0), missing,
    )  # fmt: skip
    return state, Observed(values, row, sample, np.zeros((0, rows)))


def numbers():
    pairs = [np.ones(2)] * 6
    return Numbers(*pairs, np.ones(2), np.array([10.0, 0.75, 4.0, 0.3]), np.array(1.0), np.array(0.0))


def on_device(tree):
    with jax.enable_x64(True):
        return jax.tree.map(jax.numpy.asarray, tree)


def sampler(state, observed):
    """One sweep after another from one state on; and the function that makes one."""
    switches = Switches(rows=min(256, observed.values.shape[0]))
    step = Kernel(lambda key, state, *rest: parallel(key, state, *rest, switches))
    observed, state, given = on_device(observed), on_device(state), numbers()
    keys = list(jax.random.split(jax.random.key(0), 64))

    def run(times=1):
        for number in range(times):
            assert step(keys[number % 64], state, observed, given, state.count).fits
        return times

    return run


def check(library):
    """C draws from the law that our loadings have: activities of factors and sums of loadings, in 400 draws."""
    state, observed = problem(100, 24, 5, 0.0)
    log_odds, draws = np.linspace(-2.0, -1.0, PLACES), 400

    def many(keys, state, observed, log_odds):
        sums = sums_of(observed.values, state.factor)

        def one(key):
            loading = draw_columns(seed_of(key), state, sums, log_odds, observed, 5, Switches())
            return (loading != 0.0).sum(1)[:5], loading.sum(1)[:5]

        return jax.vmap(one)(keys)

    ours = Kernel(many)(jax.random.split(jax.random.key(0), draws), state, observed, log_odds)
    c = c_kernels.Sampler(
        library, observed.values, observed.row, observed.sample, state.loading.T[:, :5], state.factor[:5], 1
    )
    cross, gram = observed.values @ c.factor.T, c.factor @ c.factor.T
    ones, sums = [], []
    for _ in range(draws):
        c.loading = np.ascontiguousarray(state.loading.T[:, :5])
        c.sites(cross, gram, np.ones(5), np.ascontiguousarray(log_odds[:5]))
        ones.append((c.loading != 0.0).sum(0))
        sums.append(c.loading.sum(0))
    for one, other in zip(ours, (ones, sums), strict=True):
        other = np.array(other)
        error = np.sqrt((one.var(0) + other.var(0)) / draws)
        assert (np.abs(one.mean(0) - other.mean(0)) < 4.5 * error).all(), "C and JAX draw from different laws"


def compare(report, library, case, options):
    rows, samples, factors, share = case
    state, observed = problem(*case)
    c = c_kernels.Sampler(
        library, observed.values, observed.row, observed.sample, state.loading.T[:, :factors], state.factor[:factors],
        min(256, rows),
    )  # fmt: skip
    times = max(1, 100_000 // (rows * factors))

    def sweeps():
        for _ in range(times):
            c.sweep()
        return times

    cross, gram = observed.values @ c.factor.T, c.factor @ c.factor.T

    def sites():
        for _ in range(times):
            c.sites(cross, gram, np.ones(factors), np.zeros(factors))
        return times

    ours = sampler(state, observed)
    runs = {"C sites alone": sites, "cavity": lambda: ours(times), "C sites, NumPy": sweeps}
    title = f"{rows} x {samples}, {factors} factors" + (f", {share:.0%} missing" if share else "")
    result = harness.compare(title, runs, repeats=options.repeats, budget=options.budget)
    report.add(result, note=TARGETS)
    return [title, *(1e3 * row["cpu"]["min"] for row in result["rows"])], result["rows"][1]


def cold(rows, samples):
    """Seconds from an empty process to the first sweep, everything imported and compiled."""
    text = COLD.format(rows=rows, samples=samples)
    done = subprocess.run([sys.executable, "-c", text], check=True, capture_output=True, text=True)
    return [float(each) for each in done.stdout.split()[-2:]]


def main():
    parser = common.options(__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=15, help="warm rounds")
    parser.add_argument("--budget", type=float, default=20.0, help="seconds of warm rounds for each contestant")
    options = parser.parse_args()
    report = harness.Report("nsfa_speed")
    library = c_kernels.compiled()
    check(library)
    table = []
    for case in CASES[:3] if options.quick else CASES:
        cells, ours = compare(report, library, case, options)
        table.append([*cells, cells[2] / cells[3], ours["cold_cpu"]])
    columns = ["CPU ms a sweep, minima", "C sites", "cavity", "C + NumPy", "ratio", "cold CPU s"]
    common.table("row-parallel sweep", columns, table)
    wall, cpu = min(cold(226, 251) for _ in range(2))
    report.facts("first result of a fresh process, 226 x 251", wall_seconds=wall, cpu_seconds=cpu)


if __name__ == "__main__":
    main()
