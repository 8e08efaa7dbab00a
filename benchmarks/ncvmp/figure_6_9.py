"""Figure 6.9: synthetic softmax regression, six features and four classes: errors of coefficients, sweeps needed.

(a) from 25 to 800 rows without noise, (b) 200 rows with Gaussian noise on the scores; 16 random data sets each, drawn
from the model. The sweeps are counted twice: plain ones, as in the thesis, and with the engine's acceleration. Only
differences of weights between classes leave a trace in the data, so the error is that of weights less their mean over
the classes.
"""

import common

# isort: split
import numpy as np

import cavity as cv  # pyright: ignore[reportMissingImports]
from cavity import models  # pyright: ignore[reportMissingImports]
from cavity.factors.links.softmax import BOUNDS  # pyright: ignore[reportMissingImports]

FEATURES, CLASSES = 6, 4
ROWS = (25, 50, 100, 200, 400, 800)
NOISE = (0.1, 0.3, 1.0, 3.0, 10.0)  # standard deviations
THESIS = ("quadratic", "log", "tilted", "adaptive")


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


def show(title, results, part):
    settings = next(iter(results.values()))
    rows = [[name, *(quartiles(found[setting][part]) for setting in settings)] for name, found in results.items()]
    common.table(f"{title}: median (quartiles)", ["", *(f"{at:g}" for at in settings)], rows)


def medians(found, part):
    return np.array([np.median(one[part]) for one in found.values()])


def statements(size, noise, plain):
    """What the thesis says of its figure, and what is found here."""
    error = {name: medians(found, 0) for name, found in size.items()}
    count = {name: medians(found, 1) for name, found in plain.items()}
    by_noise = {name: medians(found, 0) for name, found in noise.items()}

    def yes(truth):
        return "yes" if truth else "no"

    def fmt(values):
        return "  ".join(f"{value:.3g}" for value in values)

    print("\nstatements of the thesis, over the grid of rows or of noise from left to right")
    print(f"errors fall with N, for every bound: {yes(all(one[0] > one[-1] for one in error.values()))}")
    print("tilted best, closely followed by log: error of log over that of tilted")
    print(f"    {fmt(error['log'] / error['tilted'])}")
    print("quadratic comparable for N < 200, poor for larger N: error over that of tilted")
    print(f"    {fmt(error['quadratic'] / error['tilted'])}")
    print("log takes many more plain sweeps: over those of tilted")
    print(f"    {fmt(count['log'] / count['tilted'])}")
    print("quadratic slows with N, tilted and adaptive less: plain sweeps over those at the smallest N")
    for name in [name for name in ("quadratic", "tilted", "adaptive") if name in count]:
        print(f"    {name}: {fmt(count[name] / count[name][0])}")
    if "adaptive" in count:
        others = np.min([count[name] for name in count if name != "adaptive"], axis=0)
        print(
            f"adaptive converges fastest: its plain sweeps over the fewest of the others\n    "
            f"{fmt(count['adaptive'] / others)}"
        )
    print("but for very large noise, tilted (and adaptive) best: error of quadratic over that of tilted, by noise")
    print(f"    {fmt(by_noise['quadratic'] / by_noise['tilted'])}")
    print("ours (the expectation itself): error over that of tilted, by rows, by noise")
    print(f"    {fmt(error['quadrature'] / error['tilted'])}\n    {fmt(by_noise['quadrature'] / by_noise['tilted'])}")


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
    arguments = common.options(__doc__).parse_args()
    count, rows, levels = (4, (50, 200), (1.0,)) if arguments.quick else (16, ROWS, NOISE)
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
    show("(a) error of coefficients by rows", size, 0)
    show("(a) plain sweeps by rows", plain, 1)
    show("(a) accelerated sweeps by rows", size, 1)
    show("(b) error of coefficients by noise", noise, 0)
    show("(b) plain sweeps by noise", plain_noise, 1)
    show("(b) accelerated sweeps by noise", noise, 1)
    statements(size, noise, plain)
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
