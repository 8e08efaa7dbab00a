"""Serial samplers on draws of the model: tables 4.1 and 4.2 and figures 4.2 and 4.3 of the thesis, ours beside them.

Collapsed steps integrate the values of features out, accelerated steps draw the same entries at another cost,
semi-collapsed ones are given values and integrate those of new features alone. "As published" is the collapsed sampler
in NumPy with products of rows x rows numbers, timed by a few entries; ours, which keeps sums over rows, draws the same
entries. Noise, values and mass are given, as in the thesis: mass 2, values of deviation 2, noise of 0.2.
"""

import common

# isort: split
import functools
from typing import NamedTuple

import by_hand
import experiments
import harness
import jax
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from cavity.models.buffet.likelihoods import LinearGaussian
from cavity.models.buffet.likelihoods.contract import Rows
from cavity.models.buffet.samplers.accelerated import accelerated
from cavity.models.buffet.samplers.collapsed import collapsed
from cavity.models.buffet.samplers.law import Law
from cavity.models.buffet.samplers.sampler import compiled
from cavity.models.buffet.samplers.semi_collapsed import semi_collapsed
from cavity.models.buffet.samplers.state import State

SWEEPS = {"collapsed": collapsed, "semi-collapsed": semi_collapsed, "accelerated": accelerated}
SYNTHETIC = LinearGaussian(noise_precision=25.0, value_precision=0.25)
LAW = Law(mass=2.0)
COUNTED = {
    "as published": ("3", "2", "1"), "collapsed": ("3", "2", "1"), "semi-collapsed": ("1", "2", "1"),
    "accelerated": ("1", "2", "1"),
}  # fmt: skip
PUBLISHED = {
    "collapsed": "90.273; 0.020; 0.710; -24.557",
    "semi-collapsed": "1.302; 0.019; 4.534; -13.977",
    "accelerated": "1.566; 0.020; 1.780; -26.936",
}  # table 4.2: seconds a sweep, effective N, L2 error, log likelihood


def synthetic(rows, columns=10, seed=0):
    """A draw of the model, of mass 2, values of deviation 2 and noise of 0.2: data, matrix and values of features."""
    random, has = np.random.default_rng(seed), np.zeros((rows, 0), bool)
    for row in range(rows):
        has[row] = random.random(has.shape[1]) < has.sum(axis=0) / (row + 1)
        new = np.zeros((rows, random.poisson(2.0 / (row + 1))), bool)
        new[row] = True
        has = np.concatenate([has, new], axis=1)
    own = 2.0 * random.normal(size=(has.shape[1], columns))
    return has @ own + 0.2 * random.normal(size=(rows, columns)), has, own


def problem(rows, features, columns, seed=0):
    """Data, and a state of so many features that half of the rows have, for times of single sweeps."""
    random = np.random.default_rng(seed)
    active = random.random((rows, features)) < 0.5
    own = 2.0 * random.normal(size=(features, columns))
    values = active @ own + 0.2 * random.normal(size=(rows, columns))
    places = 1 << (features - 1).bit_length()
    numbers = {"noise_precision": np.array(25.0), "value_precision": np.array(0.25)}
    pad = [(0, 0), (0, places - features)]
    own = np.pad(own, pad[::-1])
    return values, State(np.pad(active, pad), own, np.zeros((0, 0)), numbers, np.array(2.0), np.ones(()))


def timed(name, values, state, repeats=5):
    """CPU seconds of a sweep from this state, the least of several; the state has twice the places that it needs."""
    kernel = compiled(SWEEPS[name], SYNTHETIC, LAW)
    rows = Rows(values, np.ones(values.shape, bool))
    pad = [(0, 0), (0, state.values.shape[0])]
    state = state._replace(active=np.pad(state.active, pad), values=np.pad(state.values, pad[::-1]))
    found = []
    for repeat in range(repeats + 1):
        cpu = harness.cpu_seconds()
        assert kernel(jax.random.key(repeat), rows, state).fits
        found.append(harness.cpu_seconds() - cpu)
        if sum(found[1:]) > 4.0:
            break
    return min(found[1:])


def published(values, state, entries=10):
    """Seconds of a sweep of the collapsed sampler as published."""
    used = state.active.any(axis=0)
    return by_hand.Collapsed(values, state.active[:, used], 0.04, 4.0).seconds(entries)


def slopes(report, arguments):
    """Table 4.1: how seconds of a sweep grow with rows, features and columns."""
    base = (200, 8, 32)
    more = {"rows": (800, 8, 32), "features": (200, 32, 32), "columns": (200, 8, 512)}
    runs = {"as published": lambda values, state: published(values, state, 4)}
    runs |= {name: functools.partial(timed, name) for name in SWEEPS}
    lines, measured = [], {}
    for name, run in runs.items():
        before = run(*problem(*base, arguments.seed))
        for axis, (what, case) in enumerate(more.items()):
            after = run(*problem(*case, arguments.seed))
            slope = float(np.log(after / before) / np.log(case[axis] / base[axis]))
            cells = [common.shown(before), common.shown(after), f"{slope:.2f}", COUNTED[name][axis]]
            lines.append([f"{name}, {what} {base[axis]}, {case[axis]}", *cells])
            measured[f"{name}, {what}"] = before, after, slope
    note = (
        "CPU seconds of a sweep at the lesser and the larger size, the slope between them of their logarithm in that "
        "of the size, and that of the largest term that the thesis counts. The others are 200 rows, 8 features, 32 "
        "columns; states have twice as many places as features, and our sweeps draw values and births too."
    )
    columns = ("", "CPU s", "CPU s, larger", "slope", "counted")
    report.table("Cost of a sweep (table 4.1)", note, columns, lines, measured)


def effective(run):
    """Effective draws for each draw, of the number of features and of the log likelihood of what is seen."""
    import arviz

    sizes = arviz.ess(run.found.to_arviz())
    draws = run.found["mass"].size
    return [float(sizes[name]) / draws for name in ("number_of_features", "log_likelihood_of_data")]


class Truth(NamedTuple):
    """Where chains begin: at the features that made the data, as hidden entries are first drawn from their values."""

    active: np.ndarray
    values: np.ndarray

    def draw(self, key):
        numbers = {"noise_precision": np.array(25.0), "value_precision": np.array(0.25)}
        return self.active, self.values, numbers


def last_state(run):
    """Of the first chain, without empty places but one."""
    state = run.found.chains.states[0]
    used = max(int(state.active.any(axis=0).sum()), 1)
    return state._replace(active=state.active[:, :used], values=state.values[:used])


def mixing(report, arguments, sweeps, rows):
    """Table 4.2, figures 4.2 and 4.3: time, effective draws and hidden entries on draws of the model, by rows."""
    note = (
        f"{sweeps} sweeps of five chains from the features that made the data, the second half kept; a tenth of the "
        "entries hidden. Effective draws for each draw, of the number of features and of the log likelihood (ArviZ); "
        "mean squared error and mean log density of a hidden entry; features. Semi-collapsed chains hardly leave the "
        "matrix that they begin at, which is the right one, and predict by it; accelerated ones move. "
        "Collapsed, published and accelerated "
        "steps draw one law, so that at equal effective draws their times compare as they are: one sweep of the first "
        "two from where the accelerated chain ended. Last column, table 4.2 (rows not stated, errors and likelihoods "
        "of other units): seconds a sweep; effective N; L2 error; log likelihood. The thesis' sampler is 57.6 times as "
        "fast as its collapsed one."
    )
    columns = ("", "CPU s a sweep", "of features", "of likelihood", "error", "log density", "features", "thesis")
    every = {}
    for count in rows:
        values, *truth = synthetic(count, seed=arguments.seed)
        gaps = common.hidden(values.shape, 0.1, arguments.seed)
        lines, measured = [], {}
        for name in ("semi-collapsed", "accelerated"):
            run = common.sample(
                values, arguments.seed, sweeps, sweeps // 2, SYNTHETIC, LAW, SWEEPS[name], chains=5, held_out=gaps,
                start=Truth(*truth),
            )  # fmt: skip
            found = [run.sweep, *effective(run), run.error, run.score, run.found["number_of_features"].mean()]
            lines.append([name, *map(common.shown, found), PUBLISHED[name]])
            measured[name] = found
        slow = {"as published": published(values, last_state(run), 20)}
        if count <= 100:
            slow["collapsed"] = timed("collapsed", values, last_state(run), 1)
        for name, seconds in slow.items():
            cells = [f"{common.shown(seconds)}, {seconds / run.sweep:.0f} times accelerated", *["as accelerated"] * 5]
            lines.append([name, *cells, PUBLISHED["collapsed"]])
            measured[name] = [seconds, *found[1:]]
        report.table(f"Time and mixing (table 4.2), {count} rows", note, columns, lines, measured)
        every |= {f"{count}, {name}": each for name, each in measured.items()}
    return every


def picture(mixed, rows):
    """Figures 4.2 and 4.3."""
    by_rows, axes = plt.subplots(1, 2, figsize=(8, 3.5))
    for name in ("as published", "semi-collapsed", "accelerated"):
        found = [mixed[f"{count}, {name}"] for count in rows]
        axes[0].loglog(rows, [each[0] for each in found], "o-", label=name)
        axes[1].semilogx(rows, [each[2] for each in found], "o-", label=name)
    axes[0].set(xlabel="rows", ylabel="CPU seconds a sweep")
    axes[1].set(xlabel="rows", ylabel="effective draws for each draw")
    axes[0].legend(fontsize=8)
    by_rows.tight_layout()
    return by_rows


def main():
    parser = common.options(__doc__.splitlines()[0])
    parser.add_argument("--sweeps", type=int, default=1000, help="of the chains of table 4.2, as in the thesis")
    arguments = parser.parse_args()
    sweeps, rows = (20, [50]) if arguments.quick else (arguments.sweeps, [50, 100, 250, 500])
    report = common.report("serial", arguments, sweeps=sweeps)
    mixed = mixing(report, arguments, sweeps, rows)
    slopes(report, arguments)
    experiments.save(harness.RESULTS / "buffet", "serial", {"serial_by_rows": picture(mixed, rows)}, found=mixed)


if __name__ == "__main__":
    main()
