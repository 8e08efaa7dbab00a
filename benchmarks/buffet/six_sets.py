"""Accelerated and semi-collapsed steps on six data sets: tables 4.3 and 4.4 and figures 4.4 to 4.6 of the thesis.

Yale faces are real, of another release; the other five are stand-ins of the same columns. Noise, values and mass are
given, as in the thesis: deviations of 0.25 and 0.75 of the data's, mass 2. "As published" is the collapsed sampler in
NumPy with products of rows x rows numbers, timed by a few entries.
"""

import common

# isort: split
import experiments
import harness
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import sets
from serial import LAW, problem, published

from cavity.models.buffet.likelihoods import LinearGaussian
from cavity.models.buffet.samplers.accelerated import accelerated
from cavity.models.buffet.samplers.semi_collapsed import semi_collapsed

SWEEPS = {"semi-collapsed": semi_collapsed, "accelerated": accelerated}
LIKELIHOOD = LinearGaussian(noise_precision=16.0, value_precision=16.0 / 9.0)  # of data of deviation one
REAL = {
    "images": "1526.4 / 38.1 / 7.6", "emoticons": "10205.4 / 32.8 / 19.0", "Yale": "8759.0 / 18.1 / 25.5",
    "AR faces": "- / 13291.8 / 120.9", "EEG": "112692.3 / 13.0 / 21.9", "piano": "- / - / 221.5",
}  # fmt: skip


def burn_in(trace):
    """The first sweep whose log likelihood is that of the last quarter, up to two of its deviations."""
    last = trace[-max(len(trace) // 4, 2) :]
    return int(np.argmax(trace >= last.mean() - 2.0 * last.std() - 1e-9)) + 1


def others(arguments):
    """Tables like those of table 4.3, all but Yale's stand-ins, with their rows cut where it is quick."""
    share = 20 if arguments.quick else arguments.share
    return {
        "images": sets.images(1000 // share, arguments.seed)[0],
        "emoticons": sets.emoticons(702 // share),
        "Yale": sets.yale(arguments),
        "AR faces": sets.faces_with_things(2600 // share),
        "EEG": sets.brain_waves(4400 // share),
        "piano": sets.piano(10_000 // share),
    }


def chain(values, gaps, kind, arguments, sweeps):
    """Numbers of the table, and the run, of data of deviation one."""
    run = common.sample(
        values, arguments.seed, sweeps, sweeps, LIKELIHOOD, LAW, SWEEPS[kind], chains=1, held_out=gaps,
        max_seconds=arguments.seconds,
    )  # fmt: skip
    trace, count = run.found["log_likelihood"][0], run.found["number_of_features"][0]
    return [run.sweep, burn_in(trace), run.error, run.score, trace[-1], count[-1], count.max(), len(trace)], run


def real(report, arguments, sweeps):
    """Table 4.4 and figure 4.4; returns traces (seconds, log likelihood) by data and sampler, and last draws."""
    note = (
        f"{sweeps} sweeps of a chain from a draw of the prior, at most {arguments.seconds:g} seconds, of data of "
        "deviation one. Burn-in: the first sweep whose log likelihood reaches that of the last quarter. Mean squared "
        "error and mean log density of hidden entries over all draws; the last log likelihood of what is seen; "
        "features at the end and at most. As published: seconds of a sweep by three entries, features as at the end of "
        "the accelerated chain. Last: the thesis' seconds a sweep, collapsed / semi-collapsed / accelerated, all rows."
    )
    columns = (
        "",
        "CPU s a sweep",
        "burn-in",
        "error",
        "log density",
        "likelihood",
        "features",
        "most",
        "sweeps",
        "thesis",
    )
    traces, parts = {}, {}
    for name, values in others(arguments).items():
        values = (values - values.mean(axis=0)) / values.std()
        gaps = common.hidden(values.shape, 100.0 / len(values) if len(values) > 500 else 0.1, arguments.seed)
        lines, measured = [], {}
        for kind in SWEEPS:
            measured[kind], run = chain(values, gaps, kind, arguments, sweeps)
            lines.append([kind, *map(common.shown, measured[kind]), REAL[name]])
            traces[f"{name}, {kind}"] = run.found.chains.seconds[0], run.found["log_likelihood"][0]
            parts[name] = run.found.draw(0, run.found.shape[1] - 1)
        if len(values) <= 1000:
            _, state = problem(len(values), max(len(parts[name].values), 1), values.shape[1])
            measured["as published"] = published(values, state, 3)
            lines.append(["as published", common.shown(measured["as published"]), *["-"] * 7, REAL[name]])
        report.table(f"{name}, {' x '.join(map(str, values.shape))}", note, columns, lines, measured)
    return traces, parts


def by_time(traces):
    """Figure 4.4."""
    names = sorted({name.split(",")[0] for name in traces})
    figure, axes = plt.subplots(2, -(-len(names) // 2), figsize=(10, 5))
    for axis, name in zip(axes.ravel(), names, strict=False):
        for kind in SWEEPS:
            axis.semilogx(*traces[f"{name}, {kind}"], label=kind)
        axis.set(title=name, xlabel="CPU seconds", ylabel="log likelihood")
    axes.ravel()[0].legend(fontsize=8)
    figure.tight_layout()
    return figure


def in_parts(draw, shape, most=8):
    """Figures 4.5 and 4.6: what the features show that most rows have, as pictures."""
    order = np.argsort(-draw.active.sum(axis=0), kind="stable")[:most]
    figure, axes = plt.subplots(1, max(len(order), 1), figsize=(1.5 * max(len(order), 1), 1.8), squeeze=False)
    for axis, feature in zip(axes[0], order, strict=False):
        axis.imshow(draw.values[feature].reshape(shape), cmap="gray")
        axis.set(title=str(int(draw.active[:, feature].sum())), xticks=[], yticks=[])
    figure.tight_layout()
    return figure


def main():
    parser = common.options(__doc__.splitlines()[0])
    parser.add_argument("--sweeps", type=int, default=12, help="of each chain; the thesis has 500, or 150 hours")
    parser.add_argument("--seconds", type=float, default=600.0, help="of wall clock for each chain at most")
    parser.add_argument("--share", type=int, default=16, help="one row of so many of each stand-in; 1 for all")
    arguments = parser.parse_args()
    sweeps = 5 if arguments.quick else arguments.sweeps
    report = common.report("six_sets", arguments, sweeps=sweeps, share=arguments.share)
    traces, draws = real(report, arguments, sweeps)
    shapes = {"emoticons": (43, 24), "AR faces": (47, 34), "Yale": (32, 32)}
    figures = {f"parts_of_{name.split()[0].lower()}": in_parts(draws[name], shapes[name]) for name in shapes}
    kept = {name: np.asarray(trace) for name, trace in traces.items()}
    experiments.save(harness.RESULTS / "buffet", "six_sets", figures | {"six_by_time": by_time(traces)}, traces=kept)


if __name__ == "__main__":
    main()
