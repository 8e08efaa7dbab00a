"""A sweep over rows of tags, 1000 booleans each and 20 features: seconds by the number of rows (asked: 2 for 1e5).

Tags are draws of a leaky noisy-or; sweeps begin at the features that made them. Uncollapsed steps draw the features of
a row from its own tags given what features call for: in general from all entries, and for large data from the ones
alone, with births from the prior or such that look at the row. The accelerated steps are of the linear Gaussian model,
to which tags are numbers about their means. One process, one thread.
"""

import common

# isort: split
import time

import harness
import jax
import numpy as np
import sets

from cavity.engine.support import machine_code
from cavity.models.buffet.likelihoods import LinearGaussian, NoisyOr
from cavity.models.buffet.likelihoods.contract import Rows
from cavity.models.buffet.samplers.accelerated import accelerated
from cavity.models.buffet.samplers.births import given_rows
from cavity.models.buffet.samplers.law import Law
from cavity.models.buffet.samplers.over_ones import over_ones
from cavity.models.buffet.samplers.sampler import compiled
from cavity.models.buffet.samplers.state import State
from cavity.models.buffet.samplers.uncollapsed import uncollapsed

FEATURES, PLACES, COLUMNS, ASKED = 20, 32, 1000, 100_000


def state_of(numbers, has, values):
    """At these features, with places for more."""
    pad = [(0, 0), (0, PLACES - FEATURES)]
    numbers = {name: np.asarray(value) for name, value in numbers.items()}
    state = np.pad(has, pad), np.pad(values, pad[::-1]), np.zeros((0, 0)), numbers, np.array(4.0), np.ones(())
    return State(*state)


def measured(kernel, rows, state, repeats):
    """Least CPU and wall seconds of a sweep after the first one."""
    found = []
    for repeat in range(repeats + 1):
        cpu, wall = harness.cpu_seconds(), time.perf_counter()
        assert kernel(jax.random.key(repeat), rows, state).fits
        found.append((harness.cpu_seconds() - cpu, time.perf_counter() - wall))
    return np.min(found[1:], axis=0)


def main():
    parser = common.options(__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="*", default=[1_000, 100_000])
    parser.add_argument("--general", type=int, default=4_000, help="rows at most of the sweeps over all entries")
    parser.add_argument("--repeats", type=int, default=2, help="sweeps that are timed")
    arguments = parser.parse_args()
    sizes = [500, 1_000] if arguments.quick else arguments.rows
    report = common.report("tags", arguments, rows=sizes)
    note = (
        "CPU and wall seconds of a sweep, the least after compilation, and CPU seconds that 100,000 rows would take if "
        "the cost were the same for each row. Below 2 s are asked of one machine."
    )
    columns = ("", "CPU s", "wall s", "for 100,000 rows")
    for rows in sizes:
        lines, found = [], {}
        for name, (kernel, data, state) in cases(rows, rows <= arguments.general, arguments.seed).items():
            cpu, wall = map(float, measured(kernel, data, state, arguments.repeats))
            lines.append([name, *(common.shown(each) for each in (cpu, wall, cpu * ASKED / rows))])
            found[name] = cpu, wall
        report.table(f"{rows} rows", note, columns, lines, found)


def cases(rows, general, seed):
    """Sweeps by name, each with its data and where it begins."""
    values, has, calls = sets.tags(rows, COLUMNS, FEATURES, seed)
    seen = np.ones(values.shape, bool)
    state = state_of({"quiet": 0.95, "attenuation": 0.2, "share": 0.01}, has, calls)
    likelihood, tags = NoisyOr(share=(1.0, 4.0)), Rows(values, seen)
    found = {
        "noisy-or, ones alone": (over_ones(tags, likelihood, Law(), uncollapsed, least=0), tags, state),
        "noisy-or, ones alone, births that look at rows": (
            over_ones(tags, likelihood, Law(), given_rows, least=0),
            tags,
            state,
        ),
    }
    if general:
        both = machine_code.resident(Rows(values.astype(float), seen)), machine_code.resident(state)
        found["noisy-or, all entries"] = (compiled(uncollapsed, likelihood, Law()), *both)
        numbers = {"noise_precision": 20.0, "value_precision": 20.0}
        both = Rows(values - values.mean(axis=0), seen), state_of(numbers, has, calls)
        found["accelerated, linear Gaussian"] = (
            compiled(accelerated, LinearGaussian(), Law()),
            *map(machine_code.resident, both),
        )
    return found


if __name__ == "__main__":
    main()
