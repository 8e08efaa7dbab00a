"""Figure 6.9: synthetic softmax regression, six features and four classes: errors of coefficients, sweeps needed.

(a) from 25 to 800 rows without noise, (b) 200 rows with Gaussian noise on the scores; 16 random data sets each, drawn
from the model. The sweeps are counted twice: plain ones, as in the thesis, and with the engine's acceleration. Only
differences of weights between classes leave a trace in the data, so the error is that of weights less their mean over
the classes.
"""

import common

# isort: split
import experiments
import numpy as np

import cavity as cv  # pyright: ignore[reportMissingImports]
from cavity import models  # pyright: ignore[reportMissingImports]
from cavity.factors.links.softmax import BOUNDS  # pyright: ignore[reportMissingImports]

FEATURES, CLASSES = 6, 4
ROWS = (25, 50, 100, 200, 400, 800)
NOISE = (0.1, 0.3, 1.0, 3.0, 10.0)  # standard deviations
THESIS = ("quadratic", "log", "tilted", "adaptive")
NOTE = "Medians over data sets (quartiles); columns: rows in (a), the standard deviation of the noise in (b)."


def simulate(rows, noise, seed):
    rng = np.random.default_rng(seed)
    x, weight, bias = rng.normal(size=(rows, FEATURES)), rng.normal(size=(CLASSES, FEATURES)), rng.normal(size=CLASSES)
    score = x @ weight.T + bias + noise * rng.normal(size=(rows, CLASSES))
    return {"x": x, "y": (score + rng.gumbel(size=score.shape)).argmax(1)}, weight


def centred(weight):
    return weight - weight.mean(0)


def compiled(bound, acceleration):
    """Weights and biases have beliefs of their own, as in the thesis."""
    return cv.compile(
        models.softmax_regression(FEATURES, CLASSES),
        observed=["y"],
        method=cv.ncvmp(bound=bound),
        acceleration=acceleration,
        tolerance=1e-4,
        max_iterations=3000,
    )


def run(program, sets):
    """Root mean squared error and sweeps of every set, and how many converged."""
    batch = program.batch([data for data, _ in sets])
    error = [
        np.sqrt(np.mean((centred(posterior["weight"].mean) - centred(weight)) ** 2))
        for posterior, (_, weight) in zip(batch, sets, strict=True)
    ]
    return np.array(error), np.array([posterior.iterations for posterior in batch]), int(np.sum(batch.converged))


def sweep_of(bound, acceleration, settings):
    """One bound at all settings: {setting: (errors, sweeps, converged)}."""
    program = compiled(bound, acceleration)
    return {setting: run(program, sets) for setting, sets in settings.items()}


def quartiles(values):
    low, middle, high = np.percentile(values, [25, 50, 75])
    return f"{middle:.3g} ({low:.3g}, {high:.3g})"


def show(page, title, results, part):
    settings = next(iter(results.values()))
    rows = [[name, *(quartiles(found[setting][part]) for setting in settings)] for name, found in results.items()]
    experiments.table(title, ["", *(f"{at:g}" for at in settings)], rows, page, NOTE)


def medians(found, part):
    return np.array([np.median(one[part]) for one in found.values()])


def statements(page, size, noise, plain):
    """What the thesis says of its figure, and what is found here."""
    error = {name: medians(found, 0) for name, found in size.items()}
    count = {name: medians(found, 1) for name, found in plain.items()}
    by_noise = {name: medians(found, 0) for name, found in noise.items()}
    rows = []

    def say(claim, measured, values):
        rows.append([claim, measured, ", ".join(f"{value:.3g}" for value in values)])

    falls = [one[-1] / one[0] for one in error.values()]
    say("errors fall with N for every bound", "error at the largest N over that at the smallest", falls)
    say("tilted best, closely followed by log", "error of log over that of tilted", error["log"] / error["tilted"])
    poor = error["quadratic"] / error["tilted"]
    say("quadratic comparable for N < 200, poor for larger N", "its error over that of tilted", poor)
    say("log takes many more sweeps", "plain sweeps over those of tilted", count["log"] / count["tilted"])
    for name in [name for name in ("quadratic", "tilted", "adaptive") if name in count]:
        slows = "plain sweeps over those at the smallest N"
        say(f"{name} slows with N{'' if name == 'quadratic' else ', less'}", slows, count[name] / count[name][0])
    if "adaptive" in count:
        others = np.min([count[name] for name in count if name != "adaptive"], axis=0)
        say("adaptive converges fastest", "its plain sweeps over the fewest of the others", count["adaptive"] / others)
    poor = by_noise["quadratic"] / by_noise["tilted"]
    say("but for very large noise, tilted best", "error of quadratic over that of tilted, by noise", poor)
    say("", "ours (quadrature) over tilted, by rows", error["quadrature"] / error["tilted"])
    say("", "ours (quadrature) over tilted, by noise", by_noise["quadrature"] / by_noise["tilted"])
    note = "Ratios of medians, over the grid of rows or of noise from left to right; for the first, one for each bound."
    experiments.table("What the thesis says of its figure", ["the thesis", "measured", "here"], rows, page, note)


def picture(panels):
    figure, axes = common.plt.subplots(2, 3, figsize=(13, 7))
    for row, (label, parts) in zip(axes, panels.items(), strict=True):
        for axis, (title, results, part) in zip(row, parts, strict=True):
            for name, found in results.items():
                at = np.array(list(found))
                low, middle, high = np.percentile([one[part] for one in found.values()], [25, 50, 75], axis=1)
                (line,) = axis.plot(at, middle, "o-", ms=3, label=name)
                axis.fill_between(at, low, high, color=line.get_color(), alpha=0.15)
            axis.set(xscale="log", yscale="log", xlabel=label, title=title)
        row[0].legend(fontsize=7)
    return figure


def main():
    parser = common.options(__doc__)
    parser.add_argument("--sets", type=int, default=16, help="random data sets at each setting")
    parser.add_argument("--rows", type=int, nargs="+", default=ROWS, help="of (a)")
    arguments = parser.parse_args()
    count, rows, levels = (4, (50, 200), (1.0,)) if arguments.quick else (arguments.sets, arguments.rows, NOISE)
    page = experiments.report("ncvmp_figure_6_9", arguments, sets=count)
    begun = experiments.harness.cpu_seconds()
    by_size = {n: [simulate(n, 0.0, seed) for seed in range(count)] for n in rows}
    by_noise = {sd: [simulate(200, sd, 100 + seed) for seed in range(count)] for sd in levels}
    size, noise, plain, plain_noise = {}, {}, {}, {}
    for bound in BOUNDS:
        both = sweep_of(bound, 5, by_size | by_noise)
        size[bound], noise[bound] = {n: both[n] for n in by_size}, {sd: both[sd] for sd in by_noise}
        if bound in THESIS:
            both = sweep_of(bound, 0, by_size | by_noise)
            plain[bound], plain_noise[bound] = {n: both[n] for n in by_size}, {sd: both[sd] for sd in by_noise}
        missed = sum(count - one[2] for one in both.values())
        print(f"{bound}: done" + (f", {missed} runs not converged" if missed else ""), flush=True)
    show(page, "(a) error of coefficients by rows", size, 0)
    show(page, "(a) plain sweeps by rows", plain, 1)
    show(page, "(a) accelerated sweeps by rows", size, 1)
    show(page, "(b) error of coefficients by noise", noise, 0)
    show(page, "(b) plain sweeps by noise", plain_noise, 1)
    show(page, "(b) accelerated sweeps by noise", noise, 1)
    statements(page, size, noise, plain)
    page.facts("cost", **{"CPU seconds, compilation included": experiments.harness.cpu_seconds() - begun})
    titles = "error of coefficients", "plain sweeps", "accelerated sweeps"
    figure = picture(
        {
            "rows": [(titles[0], size, 0), (titles[1], plain, 1), (titles[2], size, 1)],
            "sd of the noise": [(titles[0], noise, 0), (titles[1], plain_noise, 1), (titles[2], noise, 1)],
        }
    )
    parts = {"rows": size, "rows, plain": plain, "noise": noise, "noise, plain": plain_noise}
    common.save("figure_6_9", figure, **parts)


if __name__ == "__main__":
    main()
