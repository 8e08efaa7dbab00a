"""Softmax regression: sweeps and time beside Infer.NET on Iris and Wine, beside NumPyro and scikit-learn on optdigits.

(a) W_k ~ N(0, I), m_k ~ N(0, 1) on the standardised data, beliefs of weights and biases apart, to 1e-6 posterior sd,
by every bound. Infer.NET's numbers are those it recorded on the same inputs: sweeps and CPU seconds to 1e-6.

(b) 5620 handwritten digits of 64 pixels: to 1e-4 in evidence; NumPyro's NUTS kernel in one jitted loop (scaled up
where `--nuts` asks for fewer draws); NumPyro's SVI by three guides, timed to our ELBO; a held-out half beside
scikit-learn's LogisticRegression with C by cross-validation; and one sweep beside its products of matrices.

CPU time of one thread. `--runs` is the folder of Infer.NET's runs, which holds the data.
"""

import common

# isort: split
from pathlib import Path

import jax  # pyright: ignore[reportMissingImports]
import jax.numpy as jnp  # pyright: ignore[reportMissingImports]
import numpy as np
import reference_runs
from scipy.special import softmax

import cavity as cv  # pyright: ignore[reportMissingImports]
from cavity import models  # pyright: ignore[reportMissingImports]
from cavity.factors.links.softmax import BOUNDS  # pyright: ignore[reportMissingImports]

harness = common.harness
OURS = "quadrature"
# Infer.NET by the tilted bound: sweeps and CPU seconds to 1e-6, evidence. Log, Taylor and Bohning fail on Iris.
RECORDED = {"iris": (998, 0.276, -46.2205757), "wine": (834, 1.105, -37.4032506)}
QUADRATIC = {"iris": (611, 0.146, -101.7829628), "wine": (648, 0.776, -85.4188917)}


def regression(x, y, method, tolerance=1e-6, **prior):
    """A run of the compiled program that returns its sweeps, and a list that holds the last posterior."""
    model = models.softmax_regression(x.shape[1], int(y.max()) + 1, **prior)
    program = cv.compile(model, observed=["y"], method=method, tolerance=tolerance, progress=False)
    last = []

    def run():
        last[:] = [program({"x": x, "y": y})]
        assert np.isfinite(last[0].log_evidence)  # the clock stops when the result is there
        return 1

    return run, last


def timed(run):
    """CPU seconds of a warm call; the first one compiles."""
    run()
    start = harness.cpu_seconds()
    run()
    return harness.cpu_seconds() - start


def small(name, runs, repeats):
    """(a): all bounds on one small data set, ours last."""
    table = np.loadtxt(runs / f"{name}_std.csv", delimiter=",", skiprows=1)
    y, x = table[:, 0].astype(int), table[:, 1:]
    order = [bound for bound in BOUNDS if bound != OURS] + [OURS]
    made = {bound: regression(x, y, cv.ncvmp(bound=bound)) for bound in order}
    made["tilted, joint"] = regression(x, y, {"y": cv.ncvmp(bound="tilted")})
    made[f"{OURS}, joint"] = regression(x, y, {"y": cv.ncvmp(bound=OURS)})
    result = harness.compare(
        f"{name}, {x.shape[0]} x {x.shape[1]}", {key: run for key, (run, _) in made.items()}, repeats
    )
    times = {row["name"]: 1e3 * row["cpu"]["median"] for row in result["rows"]}
    rows = [
        [f"Infer.NET {bound}", evidence, f"{sweeps}", "", 1e3 * seconds]
        for bound, (sweeps, seconds, evidence) in (("tilted", RECORDED[name]), ("quadratic", QUADRATIC[name]))
    ]
    for key, (_, (posterior,)) in made.items():
        rows.append([key, posterior.log_evidence, f"{posterior.iterations}", posterior.code, times[key]])
    cells = [[row[0], f"{row[1]:.5f}", *row[2:]] for row in rows]
    common.table(f"{name}, to 1e-6 sd", ["", "evidence", "sweeps", "end", "CPU ms"], cells)
    ours = next(row for row in rows if row[0] == OURS)
    sweeps, seconds, evidence = RECORDED[name]
    print(f"asked for: at most 60 sweeps ({ours[2]}), 20 ms ({ours[4]:.3g}),", end=" ")
    print(f"evidence at least {evidence:.4f} ({ours[1]:.4f})")
    fewer, faster = sweeps / int(ours[2]), 1e3 * seconds / ours[4]
    print(f"over Infer.NET's tilted: {fewer:.3g} times fewer sweeps, {faster:.3g} times less CPU")
    return {"rows": rows}


def digits(runs):
    """Counts of 0 to 16 as fractions, less the mean of their column; the mask of one random half."""
    table = np.loadtxt(runs / "optdigits_5620.csv", delimiter=",", skiprows=1)
    x = table[:, 1:] / 16.0
    half = np.loadtxt(runs / "optdigits_split.csv", delimiter=",", skiprows=1).astype(bool)
    return x - x.mean(0), table[:, 0].astype(int), half


def to_evidence(x, y, bound, within=1e-4):
    """The loosest tolerance that has the evidence within 1e-4 of that at 1e-6 sd, its run and its CPU seconds."""
    run, last = regression(x, y, {"y": cv.ncvmp(bound=bound)})
    run()
    best = last[0].log_evidence
    for tolerance in (1e-2, 1e-3, 1e-4):
        run, last = regression(x, y, {"y": cv.ncvmp(bound=bound)}, tolerance)
        run()
        if abs(last[0].log_evidence - best) < within:
            break
    seconds = timed(run)
    posterior = last[0]
    sweeps = posterior.iterations
    print(f"cavity, {bound}: evidence {posterior.log_evidence:.5f} (fixed point {best:.5f}) in {sweeps} sweeps")
    print(f"    {seconds:.3g} s CPU, {1e3 * seconds / sweeps:.3g} ms a sweep, tolerance {tolerance:g}", flush=True)
    return posterior, seconds


def blas(x, classes, repeats=5):
    """CPU seconds of the products of matrices that a sweep cannot do without, in NumPy.

    For every class X' diag(w) X, and the variances of all rows under the covariance that it gives.
    """
    weight = np.random.default_rng(0).random((len(x), classes))
    identity = np.eye(x.shape[1])

    def sweep():
        for k in range(classes):
            covariance = np.linalg.inv((x.T * weight[:, k]) @ x + identity)
            np.einsum("nd,nd->n", x @ covariance, x)

    sweep()
    start = harness.cpu_seconds()
    for _ in range(repeats):
        sweep()
    return (harness.cpu_seconds() - start) / repeats


def potential_of(x, y):
    """Minus the log joint of all weights and biases, as NumPyro's kernel takes it."""

    def potential(z):
        score = x @ z["weight"].T + z["bias"]
        fit = jnp.take_along_axis(jax.nn.log_softmax(score, axis=-1), y[:, None], axis=1).sum()
        return 0.5 * (z["weight"] ** 2).sum() + 0.5 * (z["bias"] ** 2).sum() - fit

    return potential


def nuts(x, y, warmup, draws):
    """CPU seconds of warm-up, of the draws, and their numbers of gradients; compiled before the clock starts."""
    from numpyro.infer.hmc import hmc

    start, step = hmc(potential_fn_gen=potential_of, algo="NUTS")
    data = jnp.asarray(x, jnp.float32), jnp.asarray(y, jnp.int32)
    zero = {"weight": jnp.zeros((int(y.max()) + 1, x.shape[1])), "bias": jnp.zeros(int(y.max()) + 1)}
    state = start(zero, num_warmup=warmup, model_args=data, rng_key=jax.random.key(0))

    @jax.jit
    def many(state, count):
        def one(_, carry):
            state, gradients = carry
            state = step(state, data)
            return state, gradients + state.num_steps

        return jax.lax.fori_loop(0, count, one, (state, 0))

    jax.block_until_ready(many(state, 0))
    spent, gradients = [], []
    for count in (warmup, draws):
        clock = harness.cpu_seconds()
        state, number = jax.block_until_ready(many(state, count))
        spent.append(harness.cpu_seconds() - clock)
        gradients.append(int(number))
    return spent, gradients


def show_nuts(x, y, warmup, draws, ours):
    """NUTS with 1000 + 1000 draws, measured or scaled up from fewer."""
    spent, gradients = nuts(x, y, warmup, draws)
    print(f"NUTS: {warmup} + {draws} draws in {spent[0]:.4g} + {spent[1]:.4g} s CPU,", end=" ")
    print(f"{gradients[0]} + {gradients[1]} gradients")
    # Once adapted, every further draw of warm-up costs what a draw costs.
    total = spent[0] + (1000 - warmup) * spent[1] / draws + 1000 * spent[1] / draws
    how = "measured" if (warmup, draws) == (1000, 1000) else "extrapolated to 1000 + 1000"
    print(f"    {total:.4g} s ({how}): {total / ours:.3g} times ours", flush=True)
    return {"warmup": warmup, "draws": draws, "cpu": spent, "gradients": gradients, "total": total}


def svi(x, y, target, guide_name, budget, chunk=250):
    """NumPyro's SVI by Adam until its ELBO is within one nat of `target` or the budget of CPU seconds is spent."""
    import numpyro
    import numpyro.distributions as dist
    from numpyro import infer

    classes, features = int(y.max()) + 1, x.shape[1]

    def program(x, y):
        weight = numpyro.sample("weight", dist.Normal(0.0, 1.0).expand([classes, features]).to_event(2))
        bias = numpyro.sample("bias", dist.Normal(0.0, 1.0).expand([classes]).to_event(1))
        numpyro.sample("y", dist.Categorical(logits=x @ weight.T + bias), obs=y)

    guide = getattr(infer.autoguide, guide_name)(program)
    data = jnp.asarray(x, jnp.float32), jnp.asarray(y, jnp.int32)
    machine = infer.SVI(
        program, guide, numpyro.optim.Adam(lambda step: 0.01 * 0.1 ** (step / 10_000)), infer.Trace_ELBO()
    )
    state = machine.init(jax.random.key(0), *data)

    @jax.jit
    def steps(state):
        return jax.lax.fori_loop(0, chunk, lambda _, state: machine.update(state, *data)[0], state)

    @jax.jit
    def elbo(state):
        loss = infer.Trace_ELBO(num_particles=100, vectorize_particles=False).loss
        return -loss(jax.random.key(1), machine.get_params(state), program, guide, *data)

    jax.block_until_ready((steps(state), elbo(state)))
    spent, path = 0.0, []
    while spent < budget and (not path or path[-1][2] < target - 1.0):
        clock = harness.cpu_seconds()
        state = jax.block_until_ready(steps(state))
        spent += harness.cpu_seconds() - clock
        path.append((chunk * (len(path) + 1), spent, float(elbo(state))))
        if not path[-1][2] < target + 100.0:  # no bound lies there: single precision has broken down
            return path[:-1]
    return path


def show_svi(x, y, posterior, ours, budget):
    target, found = posterior.log_evidence, {}
    for guide in ("AutoNormal", "AutoLowRankMultivariateNormal", "AutoMultivariateNormal"):
        path = found[guide] = svi(x, y, target, guide, budget)
        steps, spent, reached = path[-1]
        early = next((one[2] for one in path if one[1] > ours), reached)
        end = "reaches it" if reached >= target - 1.0 else "stops short" if spent >= budget else "breaks down"
        print(f"SVI, {guide}: {end}: ELBO {reached:.5g} (ours {target:.5g}) after {steps} steps, {spent:.4g} s CPU,")
        print(f"    {spent / ours:.3g} times ours; at our time {early:.5g}")
        # A guide with less freedom never gets there: compare the times to the best that it does reach.
        best = max(one[2] for one in path)
        first = next(one[1] for one in path if one[2] >= best - 1.0)
        passed = int(np.argmax(posterior.trace.evidence > best - 1.0)) + 1
        own = ours * passed / posterior.iterations
        print(f"    its best less one nat, {best - 1.0:.5g}: SVI in {first:.3g} s,", end=" ")
        print(f"ours in {own:.3g} s ({passed} sweeps)", flush=True)
    return found


def log_loss(probability, label):
    return -np.mean(np.log(probability[np.arange(len(label)), label])), np.mean(probability.argmax(1) != label)


def held_out(x, y, half, bounds):
    """Log loss and error on the other half, ours with fixed and learned prior variances."""
    from sklearn.linear_model import LogisticRegressionCV

    test, label = x[~half], y[~half]
    clock = harness.cpu_seconds()
    tuned = LogisticRegressionCV(
        Cs=np.logspace(-3, 3, 13),
        cv=5,
        scoring="neg_log_loss",
        max_iter=3000,
        l1_ratios=(0,),
        use_legacy_attributes=False,
    ).fit(x[half], y[half])
    spent = harness.cpu_seconds() - clock
    rows = [
        [f"LogisticRegression, C = {np.ravel(tuned.C_)[0]:.3g}", *log_loss(tuned.predict_proba(test), label), spent]
    ]
    for bound in bounds:
        for variance in (1.0, "shared", "per class"):
            run, last = regression(x[half], y[half], {"y": cv.ncvmp(bound=bound)}, 1e-3, prior_variance=variance)
            run()
            clock = harness.cpu_seconds()
            run()
            spent = harness.cpu_seconds() - clock
            (posterior,) = last
            rows.append(
                [f"{bound}, variance {variance}", *log_loss(posterior.predict({"x": test})["y"].mean, label), spent]
            )
            plugged = softmax(test @ posterior["weight"].mean.T + posterior["bias"].mean, axis=1)
            rows.append(["    at the means", *log_loss(plugged, label), ""])
    common.table("held-out half of optdigits", ["", "log loss", "error", "CPU s"], rows)
    return rows


def main():
    parser = common.options(__doc__)
    parser.add_argument("--runs", type=Path, default=reference_runs.RUNS / "infernet_softmax", help="Infer.NET's runs")
    parser.add_argument("--parts", nargs="*", default=["small", "digits", "nuts", "svi", "held out"])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--bounds", nargs="*", default=["tilted", OURS], help="on optdigits")
    parser.add_argument("--nuts", type=int, nargs=2, default=[1000, 1000], metavar=("WARMUP", "DRAWS"))
    parser.add_argument("--seconds", type=float, default=60.0, help="CPU seconds for each guide of SVI")
    arguments = parser.parse_args()
    runs, parts, kept = arguments.runs, set(arguments.parts), {}
    if not runs.exists():
        raise SystemExit(f"{runs} does not exist: give the folder of Infer.NET's runs with --runs.")
    if "small" in parts:
        kept = {name: small(name, runs, arguments.repeats) for name in RECORDED}
    if arguments.quick or parts == {"small"}:
        common.save("softmax_speed_small", **kept)
        return
    x, y, half = digits(runs)
    print("\noptdigits, 5620 x 64, 10 classes")
    floor = blas(x, int(y.max()) + 1)
    fits = {bound: to_evidence(x, y, bound) for bound in arguments.bounds}
    for bound, (posterior, seconds) in fits.items():
        kept[bound] = {"evidence": posterior.log_evidence, "sweeps": posterior.iterations, "cpu": seconds}
        ratio = seconds / posterior.iterations / floor
        print(f"{bound}: a sweep takes {ratio:.3g} times its products of matrices ({1e3 * floor:.3g} ms)")
    posterior, ours = fits[arguments.bounds[-1]]
    if "nuts" in parts:
        kept["nuts"] = show_nuts(x, y, *arguments.nuts, ours)
    if "svi" in parts:
        kept["svi"] = show_svi(x, y, posterior, ours, arguments.seconds)
    if "held out" in parts:
        kept["held out"] = held_out(x, y, half, arguments.bounds)
    common.save("softmax_speed", **kept)


if __name__ == "__main__":
    main()
