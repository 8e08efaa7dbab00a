"""Figure 6.4: heteroskedastic regression, (a) linear on synthetic data, (b) Gaussian processes on the motorcycle data.

Both have precision exp(.) of the noise (the thesis' equation 6.42 reads as a variance, its construction of a Gamma and
an exponential is a precision). The thesis shows pictures only. Here, beside these: posteriors against NUTS, coverage of
intervals, and for (b) the learned scales of the kernels and the 95 % band under leave-one-out: by inferring again
without each point, the scales kept or learned again (with the standardisation made again too), and by taking the
point's messages from the posterior.
The motorcycle data are those of the R package MASS, `mass_misc/mcycle_133x2.csv` (--data).
"""

import common

# isort: split
import time

import jax  # pyright: ignore[reportMissingImports]
import jax.numpy as jnp  # pyright: ignore[reportMissingImports]
import numpy as np
from scipy.special import ndtr

import cavity as cv  # pyright: ignore[reportMissingImports]
from cavity.models import heteroskedastic_gp, heteroskedastic_regression  # pyright: ignore[reportMissingImports]

KERNEL = ("scale", "variance", "noise_scale", "noise_variance")
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(64)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


# predictions ----------------------------------------------------------------------------------------------------------


def sds(variance, g_mean, g_variance):
    """Predictive standard deviations given the log precision, at the nodes of a rule for it."""
    g = np.asarray(g_mean)[..., None] + np.sqrt(g_variance)[..., None] * NODES
    return np.sqrt(np.asarray(variance)[..., None] + np.exp(-g))


def half_band(variance, g_mean, g_variance, level=0.95):
    """Half the width of the central predictive interval of y ~ N(f, exp(-g)), f and g Gaussian and independent."""
    sd = sds(variance, g_mean, g_variance)
    low, high = np.zeros(sd.shape[:-1]), 10.0 * sd.max(-1)
    for _ in range(60):
        middle = 0.5 * (low + high)
        inside = (2.0 * ndtr(middle[..., None] / sd) - 1.0) @ WEIGHTS < level
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    return 0.5 * (low + high)


def log_predictive(y, mean, variance, g_mean, g_variance):
    sd = sds(variance, g_mean, g_variance)
    return np.log(np.exp(-0.5 * ((y - mean)[..., None] / sd) ** 2) / (np.sqrt(2.0 * np.pi) * sd) @ WEIGHTS)


# NUTS -----------------------------------------------------------------------------------------------------------------


def nuts(program, draws, names):
    """Means and standard deviations of a NumPyro model's sites, two chains; and the CPU time."""
    from numpyro.infer import MCMC, NUTS  # pyright: ignore[reportMissingImports]

    with jax.enable_x64(True):
        start = time.process_time()
        sampler = MCMC(
            NUTS(program, target_accept_prob=0.9),
            num_warmup=draws // 2,
            num_samples=draws,
            num_chains=2,
            chain_method="sequential",
            progress_bar=False,
        )
        sampler.run(jax.random.key(0))
        found = {name: np.asarray(sampler.get_samples()[name]) for name in names}
        return {name: (draw.mean(0), draw.std(0)) for name, draw in found.items()}, time.process_time() - start


def numpyro_linear(x, y):
    import numpyro  # pyright: ignore[reportMissingImports]
    import numpyro.distributions as dist  # pyright: ignore[reportMissingImports]

    normal = dist.Normal(0.0, 1.0)

    def program():
        weight = numpyro.sample("weight", normal.expand([x.shape[1]]).to_event(1))
        bias = numpyro.sample("bias", normal)
        precision_weight = numpyro.sample("precision_weight", normal.expand([x.shape[1]]).to_event(1))
        g = x @ precision_weight + numpyro.sample("precision_bias", normal)
        numpyro.sample("y", dist.Normal(x @ weight + bias, jnp.exp(-0.5 * g)), obs=y)

    return program


def numpyro_processes(x, y, values):
    """The model with its kernels fixed, in white coordinates."""
    import numpyro  # pyright: ignore[reportMissingImports]
    import numpyro.distributions as dist  # pyright: ignore[reportMissingImports]

    def root(scale, variance, constant):
        covariance = variance * np.exp(-0.5 * ((x[:, None] - x) / scale) ** 2) + constant
        return np.linalg.cholesky(covariance + 1e-8 * variance * np.eye(len(x)))

    root_f = root(values["scale"], values["variance"], 0.0)
    root_g = root(values["noise_scale"], values["noise_variance"], 1.0)
    white = dist.Normal(0.0, 1.0).expand([len(x)]).to_event(1)

    def program():
        f = numpyro.deterministic("f", root_f @ numpyro.sample("white_f", white))
        g = numpyro.deterministic("log_precision", root_g @ numpyro.sample("white_g", white) - 1.0)
        numpyro.sample("y", dist.Normal(f, jnp.exp(-0.5 * g)), obs=y)

    return program


# (a) ------------------------------------------------------------------------------------------------------------------

TRUTH = {"weight": [1.0], "bias": 0.5, "precision_weight": [-1.0], "precision_bias": 1.0}


def simulated(rng, size, truth):
    x = rng.normal(size=(size, len(truth["weight"])))
    g = x @ np.asarray(truth["precision_weight"]) + truth["precision_bias"]
    return x, x @ np.asarray(truth["weight"]) + truth["bias"] + np.exp(-0.5 * g) * rng.normal(size=size)


def linear(quick):
    x, y = simulated(np.random.default_rng(0), 200, TRUTH)
    methods = {"auto (NCVMP, joint)": "auto", "NCVMP, factorised": "vmp", "EP": "ep"}
    found = {}
    for name, method in methods.items():
        found[name] = cv.infer(heteroskedastic_regression(1), {"x": x, "y": y}, method=method)
    truth, seconds = nuts(numpyro_linear(x, y), 1000 if quick else 5000, list(TRUTH))
    rows = []
    for name, value in TRUTH.items():
        cells = [posterior[name] for posterior in found.values()]
        rows.append(
            [name, float(np.squeeze(value)), *(f"{float(np.squeeze(p)):.4f}" for p in truth[name])]
            + [f"{float(np.squeeze(cell.mean)):.4f} +- {float(np.squeeze(cell.sd)):.4f}" for cell in cells]
        )
    common.table(
        f"(a) linear, 200 points (NUTS: {seconds:.0f} s of CPU)", ["", "true", "NUTS mean", "NUTS sd", *found], rows
    )
    print("log evidence: " + ", ".join(f"{name} {p.log_evidence:.4f}" for name, p in found.items()))
    gaps = {name: compare(posterior, truth) for name, posterior in found.items()}
    for name, (gap, low, high) in gaps.items():
        print(f"{name}: means at most {gap:.2f} NUTS sd away, sds {low:.3f} to {high:.3f} times those of NUTS")
    calibration(10 if quick else 200)
    return x[:, 0], y, found["auto (NCVMP, joint)"], gaps


def compare(posterior, truth):
    """The largest distance of means in sd, and the range of ratios of sds."""
    gap = max(np.max(np.abs(posterior[name].mean - mean) / sd) for name, (mean, sd) in truth.items())
    ratios = np.concatenate([np.ravel(posterior[name].sd / sd) for name, (_, sd) in truth.items()])
    return float(gap), float(ratios.min()), float(ratios.max())


def calibration(times, size=100, features=2):
    """How often 95 % intervals hold parameters drawn from the prior, and 95 % bands new outcomes."""
    rng = np.random.default_rng(1)
    program = cv.compile(heteroskedastic_regression(features), ["y"])
    inside, held, converged = [], [], 0
    for _ in range(times):
        truth = {name: rng.normal(size=features if "weight" in name else None) for name in TRUTH}
        x, y = simulated(rng, size, truth)
        posterior = program({"x": x, "y": y})
        converged += posterior.converged
        for name, value in truth.items():
            inside.extend(np.ravel(np.abs(posterior[name].mean - value) < 1.96 * posterior[name].sd))
        x, y = simulated(rng, size, truth)
        new = posterior.predict({"x": x})
        mean, g = new["mean"], new["log_precision"]
        held.extend(np.abs(y - mean.mean) < half_band(mean.variance, g.mean, g.variance))
    print(
        f"{times} data sets of {size} points drawn from the model, {converged} converged: 95 % intervals hold "
        f"{100 * np.mean(inside):.1f} % of parameters, 95 % bands {100 * np.mean(held):.1f} % of new outcomes"
    )


# (b) ------------------------------------------------------------------------------------------------------------------


def cavities(posterior, y):
    """Mean and variance of f_i and of the log precision g_i without the messages of y_i.

    To f_i: precision e = E exp(g_i) at y_i. To g_i, with s = E (y_i - f_i)^2: precision s e / 2, and the slope in its
    mean is (1 - s e) / 2.
    """
    f, g = posterior["f"], posterior["log_precision"]
    e = np.exp(g.mean + 0.5 * g.variance)
    half = 0.5 * e * ((y - f.mean) ** 2 + f.variance)
    f_variance = 1.0 / (1.0 / f.variance - e)
    g_variance = 1.0 / (1.0 / g.variance - half)
    f_mean = f_variance * (f.mean / f.variance - e * y)
    g_mean = g_variance * (g.mean / g.variance - (0.5 - half + half * g.mean))
    return f_mean, f_variance, g_mean, g_variance


def without(program, x, y, values, i, again):
    """The prediction at x_i of the posterior without y_i, and y_i, in units of the data standardised without it."""
    if again:
        kept = np.arange(len(y)) != i
        x, y = ((a - a[kept].mean()) / a[kept].std() for a in (x, y))
    seen = np.where(np.arange(len(y)) == i, np.nan, y)
    data = {"x": x, "y": seen, **values}
    posterior = cv.learn(program, data, KERNEL, tolerance=0.02).posterior if again else program(data)
    f, g = posterior["f"], posterior["log_precision"]
    return y[i], f.mean[i], f.variance[i], g.mean[i], g.variance[i], posterior.converged


def coverage(y, mean, *rest):
    held = np.abs(y - mean) < half_band(*rest)
    return int(held.sum()), len(held), float(log_predictive(y, mean, *rest).sum()), np.flatnonzero(~held)


def offset_apart():
    """The model as the thesis has it: the offset is a variable of its own, and factorised from l."""
    m = cv.Model("heteroskedastic Gaussian process, offset apart")
    row = m.plate("row")
    x = m.input("x", cv.real, plates=row)
    scale, variance, noise_scale, noise_variance = (m.input(name, cv.positive) for name in KERNEL)
    f = m.random("f", cv.gaussian_process(x, cv.kernels.squared_exponential(scale, variance)))
    log = m.random("l", cv.gaussian_process(x, cv.kernels.squared_exponential(noise_scale, noise_variance)))
    offset = m.random("m", cv.gaussian(-1.0, variance=1.0))
    m.random("y", cv.gaussian(f, precision=cv.exp(log + offset)))
    return m


def processes(path, quick):
    raw = np.genfromtxt(path / "mcycle_133x2.csv", delimiter=",", skip_header=1)
    x, y = common.standardised(raw).T
    data = {"x": x, "y": y, **dict.fromkeys(KERNEL, 1.0)}
    program = cv.compile(heteroskedastic_gp(), ["y"], tolerance=1e-8)
    start = time.process_time()
    learned = cv.learn(program, data, KERNEL)
    print(f"\n(b) motorcycle, standardised: {learned}")
    print(f"{time.process_time() - start:.1f} s of CPU with compilation, {program.traces} compilation")
    if not quick:
        for number in range(3):
            away = np.exp(np.random.default_rng(number).normal(size=4) * 0.7)
            print(f"from another start: {cv.learn(program, data | dict(zip(KERNEL, away, strict=True)), KERNEL)}")
        apart = cv.learn(cv.compile(offset_apart(), ["y"], tolerance=1e-8), data, KERNEL)
        print(f"offset apart, as in the thesis: {apart}")
        by_ep = cv.compile(heteroskedastic_gp(), ["y"], method="ep", tolerance=1e-8)(data | learned.values)
    truth, seconds = nuts(numpyro_processes(x, y, learned.values), 200 if quick else 1000, ["f", "log_precision"])
    print(f"NUTS with the learned kernels: {seconds:.0f} s of CPU")
    gaps = {"NCVMP": learned.posterior} | ({} if quick else {"EP": by_ep})
    gaps = {name: compare(posterior, truth) for name, posterior in gaps.items()}
    for name, (gap, low, high) in gaps.items():
        print(f"{name}: means at most {gap:.2f} NUTS sd away, sds {low:.3f} to {high:.3f} times those of NUTS")
    found = leave_one_out(program, x, y, learned, quick)
    return raw, learned, truth, found, gaps


def leave_one_out(program, x, y, learned, quick):
    chosen = np.arange(0, len(y), 19 if quick else 1)
    ways = {"messages taken away": np.stack([y, *cavities(learned.posterior, y)])[:, chosen]}
    for name, again in (("inferred again", False), ("learned again", True)):
        rows = np.array([without(program, x, y, learned.values, i, again) for i in chosen]).T
        print(f"{name}: {int(rows[-1].sum())} of {len(chosen)} converged")
        ways[name] = rows[:-1]
    found = {name: coverage(*rows) for name, rows in ways.items()}
    rows = [
        [name, f"{inside} of {count}", 100 * inside / count, total] for name, (inside, count, total, _) in found.items()
    ]
    common.table("95 % band under leave-one-out", ["", "held", "per cent (93 to 97)", "log predictive"], rows)
    for name, (*_, outside) in found.items():
        print(f"outside, {name}: {', '.join(str(chosen[i]) for i in outside)}")
    exact, fast = (ways[name] for name in ("inferred again", "messages taken away"))
    gap = np.abs(fast[1] - exact[1]) / np.sqrt(exact[2])
    ratio = half_band(*fast[2:]) / half_band(*exact[2:])
    print(
        "messages taken away against inferred again: means of f apart by "
        f"{np.median(gap):.3f} sd (median) to {gap.max():.2f} sd, "
        f"the band {ratio.min():.2f} to {ratio.max():.2f} times as wide (median {np.median(ratio):.3f})"
    )
    print(f"one program for all: {program.traces} compilations (with and without a missing outcome)")
    return {name: {"held": one[0], "of": one[1], "log predictive": one[2]} for name, one in found.items()}


# pictures -------------------------------------------------------------------------------------------------------------


def picture(first, second):
    x, y, posterior, _ = first
    raw, learned, truth, *_ = second
    figure, (left, right) = common.plt.subplots(1, 2, figsize=(12, 4.5))
    line = np.linspace(x.min(), x.max(), 200)
    new = posterior.predict({"x": line[:, None]})["y"]
    _band(left, line, new.mean, new.sd, x, y, "(a) linear, synthetic: mean and 2 sd")
    centre, spread = raw.mean(0), raw.std(0)
    line = np.linspace(raw[:, 0].min() - 1, raw[:, 0].max() + 3, 300)
    new = learned.posterior.predict({"x": (line - centre[0]) / spread[0]})["y"]
    title = "(b) motorcycle, Gaussian processes: mean and 2 sd"
    _band(right, line, centre[1] + spread[1] * new.mean, spread[1] * new.sd, *raw.T, title)
    right.plot(raw[:, 0], centre[1] + spread[1] * truth["f"][0], "r--", lw=1, label="mean of f, NUTS")
    right.set(xlabel="time after impact (ms)", ylabel="acceleration (g)")
    right.legend(fontsize=7)
    return figure


def _band(axis, line, mean, sd, x, y, title):
    axis.fill_between(line, mean - 2 * sd, mean + 2 * sd, color="0.85")
    axis.plot(line, mean, "k")
    axis.plot(x, y, "b.", ms=4)
    axis.set_title(title, fontsize=9)


def main():
    arguments = common.options(__doc__).parse_args()
    path = common.folder(arguments, "mass_misc")
    first = linear(arguments.quick)
    second = processes(path, arguments.quick)
    common.save(
        "figure_6_4", picture(first, second), values=second[1].values, loo=second[3], nuts=[first[3], second[4]]
    )


if __name__ == "__main__":
    main()
