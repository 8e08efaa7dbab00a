"""Bayesian logistic regression, w ~ N(0, I): NumPyro NUTS, EP and NCVMP in NumPy (floors), and cavity by both methods.

NUTS stands twice: as `MCMC.run`, which is what users call and which compiles again at every call, and as the same
kernel in one jitted scan, where a warm run has no compilation at all.

Accuracy is checked against a long NUTS run, kept in `results/` (make it with `--reference`).
"""

import harness

# isort: split
import json
import math

import jax
import numpy as np
from scipy.linalg import lapack
from scipy.special import expit

SIZES = [(rows, columns) for rows in (100, 1_000, 10_000) for columns in (5, 50)]
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(20)
WEIGHTS = WEIGHTS / WEIGHTS.sum()
MOMENTS = np.stack([WEIGHTS, WEIGHTS * NODES, WEIGHTS * (NODES**2 - 1.0)])


def data(rows, columns, seed=3):
    """Inputs scaled so that scores have unit variance under the prior."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, columns)) / math.sqrt(columns)
    weight = rng.normal(size=columns)
    return x, rng.random(rows) < expit(x @ weight)


def posterior(x, precision, shift):
    """Mean and covariance of w, and of each row's score, from the rows' messages."""
    factor, _ = lapack.dpotrf((x.T * precision) @ x + np.eye(x.shape[1]), lower=1)
    inverse, _ = lapack.dpotri(factor, lower=1)
    covariance = np.tril(inverse) + np.tril(inverse, -1).T
    mean = covariance @ (x.T @ shift)
    return mean, covariance, x @ mean, np.einsum("nd,nd->n", x @ covariance, x)


def ep_message(m, v, precision, shift, sign):
    """Moments of the logistic times the cavity by Gauss-Hermite, over the cavity, free of cancellation."""
    keep = 1.0 / (1.0 - v * precision)
    vc, mc = v * keep, (m - v * shift) * keep
    sd = np.sqrt(vc)
    likelihood = expit(sign * (mc + NODES[:, None] * sd))
    z, first, second = MOMENTS @ likelihood
    score, curvature = first / (z * sd), (first / z) ** 2 / vc - second / (z * vc)
    new = curvature / (1.0 - vc * curvature)
    return new, (score + curvature * mc) / (1.0 - vc * curvature)


def ncvmp_message(m, v, precision, shift, sign):
    """Expected gradient and curvature of the log logistic under the belief."""
    likelihood = expit(sign * (m + NODES[:, None] * np.sqrt(v)))
    score = sign * (1.0 - WEIGHTS @ likelihood)
    new = WEIGHTS @ (likelihood * (1.0 - likelihood))
    return new, score + new * m


def floor(x, y, message, tolerance=1e-6, most=500):
    """Parallel updates of two scalars a row; the step is halved whenever the change grows."""
    sign = np.where(y, 1.0, -1.0)
    precision, shift = np.full(len(y), 0.1), np.zeros(len(y))
    step, last = 0.9, math.inf
    mean, covariance, m, v = posterior(x, precision, shift)
    for _ in range(most):
        new_precision, new_shift = message(m, v, precision, shift, sign)
        move, turn = new_precision - precision, new_shift - shift
        change = max(np.abs(move).max(), np.abs(turn).max())
        if change < tolerance:
            break
        if change > last:
            step = max(0.5 * step, 0.2)
        last = change
        precision, shift = precision + step * move, shift + step * turn
        mean, covariance, m, v = posterior(x, precision, shift)
    return mean, np.sqrt(np.diag(covariance))


def mcmc_run(x, y, warmup, draws):
    """NUTS as the manual of NumPyro has it."""
    import numpyro
    import numpyro.distributions as dist

    def program(x, y):
        weight = numpyro.sample("w", dist.Normal(0.0, 1.0).expand([x.shape[1]]).to_event(1))
        numpyro.sample("y", dist.Bernoulli(logits=x @ weight), obs=y)

    x, y = jax.numpy.asarray(x), jax.numpy.asarray(y, dtype=jax.numpy.int32)
    kernel = numpyro.infer.NUTS(program)
    mcmc = numpyro.infer.MCMC(kernel, num_warmup=warmup, num_samples=draws, progress_bar=False)

    def run():
        mcmc.run(jax.random.key(0), x, y)
        return np.asarray(mcmc.get_samples()["w"], dtype=np.float64)

    return run


def sampler(x, y, warmup, draws):
    """NumPyro's NUTS kernel, the whole run in one jitted scan."""
    from numpyro.infer.hmc import hmc

    def potential_of(x, y):
        sign = 1.0 - 2.0 * y
        return lambda weight: 0.5 * weight @ weight + jax.nn.softplus(sign * (x @ weight)).sum()

    start, step = hmc(potential_fn_gen=potential_of, algo="NUTS")
    x, y = jax.numpy.asarray(x, dtype=jax.numpy.float32), jax.numpy.asarray(y, dtype=jax.numpy.float32)

    @jax.jit
    def chain(key, x, y):
        state = start(jax.numpy.zeros(x.shape[1]), num_warmup=warmup, model_args=(x, y), rng_key=key)
        state = jax.lax.fori_loop(0, warmup, lambda _, state: step(state, (x, y)), state)

        def draw(state, _):
            state = step(state, (x, y))
            return state, state.z

        return jax.lax.scan(draw, state, length=draws)[1]

    return lambda seed=0: np.asarray(chain(jax.random.key(seed), x, y), dtype=np.float64)


def reference_path(rows, columns):
    return harness.RESULTS / f"logistic_reference_{rows}x{columns}.json"


def make_reference(rows, columns, draws):
    from numpyro.diagnostics import effective_sample_size

    samples = sampler(*data(rows, columns), 1_000, draws)(seed=7)
    content = {
        "draws": draws,
        "mean": samples.mean(0).tolist(),
        "sd": samples.std(0).tolist(),
        "effective": float(effective_sample_size(samples[None]).min()),
    }
    harness.RESULTS.mkdir(exist_ok=True)
    reference_path(rows, columns).write_text(json.dumps(content) + "\n")
    print(f"reference {rows} x {columns}: {content['effective']:.0f} effective draws")


def accuracy(mean, sd, rows, columns):
    path = reference_path(rows, columns)
    if not path.exists():
        return "no reference; run with --reference"
    long = {name: np.asarray(value) for name, value in json.loads(path.read_text()).items()}
    off = np.abs((mean - long["mean"]) / long["sd"]).max()
    wide = np.abs(sd / long["sd"] - 1.0).max()
    return f"means within {off:.3f} sd, sds within {100 * wide:.1f} % (of NUTS with {long['effective']:.0f} draws)"


def model(cv, columns):
    m = cv.Model("logistic regression")
    row = m.plate("row")
    x = m.input("x", cv.vector(columns), plates=row)
    weight = m.random("w", cv.vector_gaussian(np.zeros(columns), covariance=np.eye(columns)))
    m.random("y", cv.bernoulli(cv.logistic(cv.dot(weight, x))), plates=row)
    return m


def contest(rows, columns, arguments):
    """All contestants on one data set; cavity by one method is the last row and the base of the ratios."""
    x, y = data(rows, columns)
    found = {}

    def floor_of(name, message):
        def run():
            found[name] = floor(x, y, message)

        return run

    def nuts(name, make):
        run = make(x, y, 1_000, 1_000)

        def sample():
            samples = run()
            found[name] = samples.mean(0), samples.std(0)

        return sample

    def ours(name, method):
        import cavity as cv

        program = cv.compile(
            model(cv, columns), observed=["y"], method=method, sizes={"row": rows}, trace_evidence=False
        )

        def run():
            belief = program({"x": x, "y": y})["w"]
            found[name] = belief.mean, belief.sd

        return run

    runs = {}
    if not arguments.quick:
        runs["NumPyro MCMC.run"] = nuts("NumPyro MCMC.run", mcmc_run)
        runs["NumPyro NUTS kernel"] = nuts("NumPyro NUTS kernel", sampler)
    runs["NumPy NCVMP"] = floor_of("NumPy NCVMP", ncvmp_message)
    runs["NumPy EP"] = floor_of("NumPy EP", ep_message)
    if not arguments.peers:
        runs["cavity NCVMP"] = ours("cavity NCVMP", "ncvmp")
        runs["cavity EP"] = ours("cavity EP", "ep")
    result = harness.compare(
        f"Logistic regression, {rows} x {columns}", runs, arguments.repeats, min(arguments.budget, 60.0)
    )
    return result, {f"accuracy, {name}": accuracy(*each, rows, columns) for name, each in found.items()}


def main():
    parser = harness.options(__doc__)
    parser.set_defaults(repeats=3, budget=10.0)
    parser.add_argument("--quick", action="store_true", help="without NUTS")
    parser.add_argument("--reference", type=int, metavar="DRAWS", help="make the long NUTS runs (100000 is enough)")
    parser.add_argument("--rows", type=int, nargs="*", default=[100, 1_000, 10_000])
    arguments = parser.parse_args()
    sizes = [size for size in SIZES if size[0] in arguments.rows]
    if arguments.reference:
        for size in sizes:
            make_reference(*size, arguments.reference)
        return
    report = harness.Report("logistic", **vars(arguments))
    gains = {}
    for rows, columns in sizes:
        result, facts = contest(rows, columns, arguments)
        report.add(result, **facts)
        for entry in result["rows"]:
            gains.setdefault(entry["name"], []).append(entry["ratio"]["median"])
    print("\nratios over all sizes: geometric mean, smallest")
    for name, values in gains.items():
        print(f"{name:26}{math.exp(np.mean(np.log(values))):8.3g}{min(values):8.3g}")


if __name__ == "__main__":
    main()
