"""Bayesian PCA by VMP, N = 1000, D = 100, K = 10: BayesPy with and without rotations, NumPy (floor) and cavity.

x[d, n] ~ N(w[d] . z[n], 1 / noise), z ~ N(0, I), w ~ N(0, I), noise ~ Gamma(1e-3, 1e-3); `--ard` gives each column of w
its own precision in BayesPy, the model of its manual. Time per iteration, then iterations until the relative change of
the bound is below 1e-6.
"""

import harness

# isort: split
import functools

import numpy as np

FACTORS = 10
SHAPE = RATE = 1e-3


def data(rows, columns, seed=7):
    rng = np.random.default_rng(seed)
    weight, z = rng.normal(size=(columns, FACTORS)), rng.normal(size=(FACTORS, rows))
    return weight @ z + 0.5 * rng.normal(size=(columns, rows))


def bayespy_vb(x, rotate, ard):
    from bayespy.inference import VB
    from bayespy.inference.vmp import transformations
    from bayespy.nodes import Gamma, GaussianARD, SumMultiply

    columns, rows = x.shape
    z = GaussianARD(0, 1, plates=(1, rows), shape=(FACTORS,), name="z")
    scale = Gamma(1e-3, 1e-3, plates=(FACTORS,), name="scale") if ard else 1.0
    weight = GaussianARD(0, scale, plates=(columns, 1), shape=(FACTORS,), name="w")
    noise = Gamma(SHAPE, RATE, name="noise")
    y = GaussianARD(SumMultiply("i,i", weight, z), noise, name="y")
    y.observe(x)
    np.random.seed(1)  # noqa: NPY002  BayesPy draws from NumPy's global generator
    weight.initialize_from_random()
    vb = VB(y, *([scale] if ard else []), z, weight, noise, autosave_filename="")
    if rotate:
        of_z = transformations.RotateGaussianARD(z)
        of_weight = transformations.RotateGaussianARD(weight, *([scale] if ard else []))
        vb.set_callback(transformations.RotationOptimizer(of_z, of_weight, FACTORS).rotate)
    return vb


def bayespy_run(x, iterations, rotate, ard):
    def run():
        bayespy_vb(x, rotate, ard).update(repeat=iterations, tol=0.0, verbose=False)
        return iterations

    return run


def bayespy_iterations(x, rotate, ard, most):
    vb = bayespy_vb(x, rotate, ard)
    vb.update(repeat=most, tol=1e-6, verbose=False)
    return f"{int(vb.iter)} (bound {vb.L[vb.iter - 1]:.2f})"


def floor_run(x, iterations):
    """VMP in NumPy: rows of one block share their covariance, so an iteration is two products with the data."""
    columns, rows = x.shape
    eye, total = np.eye(FACTORS), (x * x).sum()

    def run():
        weight = np.random.default_rng(1).normal(size=(columns, FACTORS))
        noise = 1.0
        second = weight.T @ weight + columns * eye
        for _ in range(iterations):
            covariance = np.linalg.inv(eye + noise * second)
            z = noise * covariance @ (weight.T @ x)
            second_z = z @ z.T + rows * covariance
            covariance = np.linalg.inv(eye + noise * second_z)
            cross = x @ z.T
            weight = noise * cross @ covariance
            second = weight.T @ weight + columns * covariance
            error = total - 2.0 * (cross * weight).sum() + (second * second_z).sum()
            noise = (SHAPE + 0.5 * columns * rows) / (RATE + 0.5 * error)
        return iterations

    return run


def model(cv):
    m = cv.Model("principal components")
    n, d = m.plate("n"), m.plate("d")
    prior = cv.vector_gaussian(np.zeros(FACTORS), covariance=np.eye(FACTORS))
    z = m.random("z", prior, plates=n)
    weight = m.random("w", prior, plates=d)
    noise = m.random("noise", cv.gamma(shape=SHAPE, rate=RATE))
    m.random("x", cv.gaussian(cv.dot(weight, z), precision=noise), plates=(d, n))
    return m


def cavity_program(x, **settings):
    import cavity as cv

    columns, rows = x.shape
    return cv.compile(model(cv), observed=["x"], method="vmp", sizes={"d": columns, "n": rows}, **settings)


def cavity_run(x, iterations):
    program = cavity_program(x, max_iterations=iterations)
    return lambda: int(program({"x": x}).iterations)


def cavity_iterations(x):
    posterior = cavity_program(x)({"x": x})
    return f"{posterior.iterations} (bound {posterior.log_evidence:.2f})"


def main():
    parser = harness.options(__doc__)
    parser.set_defaults(repeats=3)
    parser.add_argument("--iterations", type=int, default=30)
    parser.add_argument("--most", type=int, default=500, help="limit of the runs to convergence")
    parser.add_argument("--ard", action="store_true")
    arguments = parser.parse_args()
    x = data(1_000, 100)
    report = harness.Report("pca", **vars(arguments))
    iterations, ard = arguments.iterations, arguments.ard
    runs = {
        "BayesPy": bayespy_run(x, iterations, False, ard),
        "BayesPy with rotations": bayespy_run(x, iterations, True, ard),
        "NumPy": floor_run(x, iterations),
    }
    needed = {"BayesPy": functools.partial(bayespy_iterations, x, False, ard, arguments.most)}
    needed["BayesPy with rotations"] = functools.partial(bayespy_iterations, x, True, ard, arguments.most)
    if not arguments.peers:
        runs["cavity"] = cavity_run(x, iterations)
        needed["cavity"] = functools.partial(cavity_iterations, x)
    result = harness.compare("PCA, 1000 x 100, 10 factors, per iteration", runs, arguments.repeats, arguments.budget)
    report.add(result, **{f"iterations to convergence, {name}": count() for name, count in needed.items()})


if __name__ == "__main__":
    main()
