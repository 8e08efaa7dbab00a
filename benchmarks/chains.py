"""Chains of 100,000 steps: the Kalman smoother of the RxInfer benchmark and a hidden Markov model with ten states.

x_1 ~ N(0, 100 I), x_t ~ N(A x_(t-1), 0.05 I), y_t ~ N(B x_t, 10 I) in two dimensions, A a rotation by pi / 15,
B = diag(1.3, 0.7); and z_t ~ transition[z_(t-1)], y_t ~ N(value[z_t], 1). Peers: the same recursions in numba, and
dynamax where it is installed (it is not among the extras: its figures in the issue were 7.6 microseconds a step for the
smoother). RxInfer publishes 77 microseconds a step.
"""

import harness

# isort: split
import importlib.util
import math

import numpy as np

STEPS, STATES = 100_000, 10
A = np.array([[math.cos(math.pi / 15), -math.sin(math.pi / 15)], [math.sin(math.pi / 15), math.cos(math.pi / 15)]])
B, Q, R = np.diag([1.3, 0.7]), 0.05 * np.eye(2), 10.0 * np.eye(2)


def smoother_data(steps, seed=0):
    rng = np.random.default_rng(seed)
    x, rows = rng.normal(0.0, 10.0, 2), np.empty((steps, 2))
    for t in range(steps):
        x = A @ x + rng.normal(0.0, math.sqrt(0.05), 2) if t else x
        rows[t] = B @ x + rng.normal(0.0, math.sqrt(10.0), 2)
    return rows


def smoother_program(steps):
    import cavity as cv

    m = cv.Model("smoother")
    t = m.plate("t", steps)
    x = m.chain(
        "x",
        over=t,
        first=cv.vector_gaussian(np.zeros(2), covariance=100.0 * np.eye(2)),
        then=lambda previous: cv.vector_gaussian(A @ previous, covariance=Q),
    )
    m.random("y", cv.vector_gaussian(B @ x, covariance=R), plates=t)
    return cv.compile(m, observed=["y"])


def numba_smoother():
    import numba

    @numba.njit(cache=False)
    def smooth(y, A, B, Q, R):
        steps, d = y.shape
        means, covariances = np.empty((steps, d)), np.empty((steps, d, d))
        predicted_means, predicted = np.empty((steps, d)), np.empty((steps, d, d))
        mean, covariance, evidence = np.zeros(d), 100.0 * np.eye(d), 0.0
        for t in range(steps):
            if t:
                mean, covariance = A @ mean, A @ covariance @ A.T + Q
            predicted_means[t], predicted[t] = mean, covariance
            spread = B @ covariance @ B.T + R
            gap, gain = y[t] - B @ mean, np.linalg.solve(spread, B @ covariance).T
            evidence -= 0.5 * (gap @ np.linalg.solve(spread, gap) + math.log(np.linalg.det(2.0 * math.pi * spread)))
            mean, covariance = mean + gain @ gap, covariance - gain @ B @ covariance
            means[t], covariances[t] = mean, covariance
        for t in range(steps - 2, -1, -1):
            back = np.linalg.solve(predicted[t + 1], A @ covariances[t]).T
            means[t] += back @ (means[t + 1] - predicted_means[t + 1])
            covariances[t] += back @ (covariances[t + 1] - predicted[t + 1]) @ back.T
        return means, covariances, evidence

    return smooth


def dynamax_smoother(y):
    import jax
    import jax.numpy as jnp
    from dynamax.linear_gaussian_ssm import LinearGaussianSSM

    jax.config.update("jax_enable_x64", True)
    model = LinearGaussianSSM(2, 2)
    parameters, _ = model.initialize(
        jax.random.key(0),
        initial_mean=jnp.zeros(2),
        initial_covariance=100.0 * jnp.eye(2),
        dynamics_weights=jnp.array(A),
        dynamics_covariance=jnp.array(Q),
        emission_weights=jnp.array(B),
        emission_covariance=jnp.array(R),
    )
    run = jax.jit(model.smoother)
    return lambda: np.asarray(run(parameters, jnp.array(y)).smoothed_means)


def markov_data(steps, states, seed=1):
    rng = np.random.default_rng(seed)
    transition, value = rng.dirichlet(np.ones(states), states), np.linspace(-2.0, 2.0, states)
    z, y = 0, np.empty(steps)
    for t in range(steps):
        z = rng.choice(states, p=transition[z])
        y[t] = rng.normal(value[z], 1.0)
    return transition, value, y


def markov_program(steps, states):
    import cavity as cv

    m = cv.Model("hidden Markov model")
    t, k = m.plate("t", steps), m.plate("state", states)
    transition, value = m.input("transition", cv.simplex(states), plates=k), m.input("value", cv.real, plates=k)
    z = m.chain(
        "z",
        over=t,
        first=cv.categorical(np.full(states, 1.0 / states)),
        then=lambda previous: cv.categorical(transition[previous]),
    )
    m.random("y", cv.gaussian(value[z], variance=1.0), plates=t)
    return cv.compile(m, observed=["y"])


def numba_markov():
    import numba

    @numba.njit(cache=False)
    def smooth(transition, log_likelihood):
        steps, states = log_likelihood.shape
        forward, backward, evidence = np.empty((steps, states)), np.ones((steps, states)), 0.0
        belief = np.full(states, 1.0 / states)
        for t in range(steps):
            if t:
                belief = forward[t - 1] @ transition
            top = log_likelihood[t].max()
            belief = belief * np.exp(log_likelihood[t] - top)
            total = belief.sum()
            forward[t] = belief / total
            evidence += math.log(total) + top
        for t in range(steps - 2, -1, -1):
            likelihood = np.exp(log_likelihood[t + 1] - log_likelihood[t + 1].max())
            message = transition @ (likelihood * backward[t + 1])
            backward[t] = message / message.sum()
        joint = forward * backward
        return joint / joint.sum(1).reshape(-1, 1), evidence

    return smooth


def dynamax_markov(transition, value, y):
    import jax
    import jax.numpy as jnp
    from dynamax.hidden_markov_model import hmm_smoother

    jax.config.update("jax_enable_x64", True)
    first = jnp.full(len(value), 1.0 / len(value))

    @jax.jit
    def run(y):
        likelihood = -0.5 * (y[:, None] - jnp.array(value)) ** 2 - 0.5 * math.log(2.0 * math.pi)
        return hmm_smoother(first, jnp.array(transition), likelihood).smoothed_probs

    return lambda: np.asarray(run(jnp.array(y)))


def main():
    parser = harness.options(__doc__.split("\n")[0])
    parser.add_argument("--steps", type=int, default=STEPS)
    arguments = parser.parse_args()
    report = harness.Report("chains", steps=arguments.steps)
    steps, dynamax = arguments.steps, importlib.util.find_spec("dynamax") is not None
    settings = {"repeats": arguments.repeats, "budget": arguments.budget}

    y, smooth = smoother_data(steps), numba_smoother()
    runs = {"dynamax": dynamax_smoother(y)} if dynamax else {}
    program = None if arguments.peers else smoother_program(steps)
    if program is not None:
        runs["cavity"] = lambda: program({"y": y}).log_evidence
    runs["numba"] = lambda: smooth(y, A, B, Q, R)[2]
    result = harness.compare(f"Kalman smoother, {steps} steps", runs, **settings)
    facts = {f"{row['name']}, microseconds of CPU a step": 1e6 * row["cpu"]["min"] / steps for row in result["rows"]}
    if program is not None:
        posterior, (means, _, evidence) = program({"y": y}), smooth(y, A, B, Q, R)
        facts["difference of the means"] = float(np.abs(posterior["x"].mean - means).max())
        facts["relative difference of the log evidence"] = abs(posterior.log_evidence / evidence - 1.0)
    report.add(result, **facts)

    transition, value, y = markov_data(steps, STATES)
    likelihood = -0.5 * (y[:, None] - value) ** 2 - 0.5 * math.log(2.0 * math.pi)
    smooth = numba_markov()
    runs = {"dynamax": dynamax_markov(transition, value, y)} if dynamax else {}
    program = None if arguments.peers else markov_program(steps, STATES)
    data = {"transition": transition, "value": value, "y": y}
    if program is not None:
        runs["cavity"] = lambda: program(data).log_evidence
    runs["numba"] = lambda: smooth(transition, likelihood)[1]
    result = harness.compare(f"Hidden Markov model, {STATES} states, {steps} steps", runs, **settings)
    facts = {f"{row['name']}, microseconds of CPU a step": 1e6 * row["cpu"]["min"] / steps for row in result["rows"]}
    if program is not None:
        posterior, (states, evidence) = program(data), smooth(transition, likelihood)
        facts["difference of the probabilities"] = float(np.abs(posterior["z"].mean - states).max())
        facts["relative difference of the log evidence"] = abs(posterior.log_evidence / evidence - 1.0)
    report.add(result, **facts)


if __name__ == "__main__":
    main()
