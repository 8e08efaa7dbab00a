"""Speed of the accelerated sampler of binary features: beside C, compiled by numba and by JAX, and by number of rows.

Data are noisy overlays of four shapes on a grid of 6 x 6, each there in half of the images. Sweeps begin from one
matrix of ten features: the four shapes, and six that a tenth of the rows have by chance. One process, one thread,
contestants in turns.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import harness

# isort: split
import c_kernels
import jax
import numpy as np

from cavity.engine.support import machine_code
from cavity.models.buffet.likelihoods import LinearGaussian, Rows
from cavity.models.buffet.samplers.accelerated import accelerated, accelerated_in_jax, fastest_pass
from cavity.models.buffet.samplers.law import Law
from cavity.models.buffet.samplers.passes import chances_of, tables_of
from cavity.models.buffet.samplers.sampler import compiled
from cavity.models.buffet.samplers.state import State

SHAPES = (
    "010000/111000/010000/000000/000000/000000",
    "000111/000101/000111/000000/000000/000000",
    "000000/000000/000000/100000/110000/111000",
    "000000/000000/000000/000111/000010/000010",
)
FEATURES, PLACES, NOISE = 10, 16, 0.5
LIKELIHOOD, LAW = LinearGaussian(), Law()


def images(rows, seed=0):
    """(rows, 36) images about zero, and the state that sweeps begin from."""
    random = np.random.default_rng(seed)
    shapes = np.array([[float(bit) for bit in shape.replace("/", "")] for shape in SHAPES])
    matrix = random.random((rows, len(shapes))) < 0.5
    full = matrix @ shapes + NOISE * random.normal(size=(rows, shapes.shape[1]))
    full -= full.mean(axis=0)
    active = np.zeros((rows, PLACES), bool)
    active[:, : len(shapes)] = matrix
    active[:, len(shapes) : FEATURES] = random.random((rows, FEATURES - len(shapes))) < 0.1
    numbers = {"noise_precision": np.array(1.0 / NOISE**2), "value_precision": np.array(4.0)}
    state = State(active, np.zeros((PLACES, full.shape[1])), np.zeros((0, 0)), numbers, np.ones(()), np.ones(()))
    return full, state


def ours(sweep, full, state):
    """Sweeps from one state, each with another key."""
    kernel = compiled(sweep, LIKELIHOOD, LAW)
    rows = machine_code.resident(Rows(full, np.ones(full.shape, bool)))
    state = machine_code.resident(state)
    keys = iter(range(1 << 30))

    def run():
        assert kernel(jax.random.key(next(keys)), rows, state).fits

    return run


def theirs(library, full, state):
    sampler = c_kernels.Sampler(library, full)
    noise, own = (float(state.numbers[name]) for name in ("noise_precision", "value_precision"))

    def run():
        sampler.sweep(state.active, noise, own, 1.0)

    return run


def check(library):
    """C draws the matrix that our pass draws from the same random numbers."""
    full, state = images(300)
    with jax.enable_x64(True):
        tables = jax.jit(tables_of, static_argnums=(0, 1))(LAW, len(full), state)
        chances = chances_of(jax.random.key(0), len(full), PLACES)
        found = jax.jit(fastest_pass())(state.active, full, state.numbers, tables, chances)
    both = (float(state.numbers[name]) for name in ("noise_precision", "value_precision"))
    given = (np.ascontiguousarray(each) for each in (*tables, *chances))
    active, fits = c_kernels.over_rows(library, state.active, full, *both, *given)
    assert fits
    assert (active == np.asarray(found.active)).all(), "C and cavity draw other matrices"


def main():
    options = harness.options(__doc__.splitlines()[0])
    options.add_argument("--most", type=int, default=100_000, help="rows of the largest problem")
    options = options.parse_args()
    report = harness.Report("buffet_accelerated")
    library = c_kernels.compiled()
    check(library)
    times = {}
    sizes = [rows for rows in (1_000, 10_000, 100_000) if rows <= options.most]
    for rows in sizes:
        problem = images(rows)
        runs = {
            "cavity, JAX": ours(accelerated_in_jax, *problem),
            "cavity, numba": ours(accelerated, *problem),
            "C and NumPy": theirs(library, *problem),
        }
        result = harness.compare(f"{rows} images, {FEATURES} features", runs, options.repeats, options.budget)
        report.add(result)
        for row in result["rows"]:
            times.setdefault(row["name"], []).append(row["cpu"]["min"])
    if len(sizes) > 1:
        slopes = {name: np.polyfit(np.log(sizes), np.log(each), 1)[0] for name, each in times.items()}
        report.facts("slope of log CPU seconds in log rows", **slopes)


if __name__ == "__main__":
    main()
