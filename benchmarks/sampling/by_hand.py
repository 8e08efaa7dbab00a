"""The same Gibbs steps written by hand for each model, compiled by numba: what a patient user would write."""

import math

import cases
import numba
import numpy as np
from scipy.special import ndtr, ndtri


def hierarchical(data, draws, rng):
    y = data["y"]
    groups, each = y.shape
    total, found = y.sum(1), {n: np.zeros(draws) for n in ("centre", "between", "within")}
    centre, between, within = 0.0, 1.0, 1.0
    for i in range(draws):
        # centre and effects jointly: the centre with the effects integrated out
        weight = 1.0 / (1.0 / between + 1.0 / (each * within))
        precision = 0.01 + groups * weight
        centre = weight * (total / each).sum() / precision + rng.standard_normal() / np.sqrt(precision)
        precision = between + each * within
        effect = (between * centre + within * total) / precision + rng.standard_normal(groups) / np.sqrt(precision)
        between = rng.gamma(2.0 + groups / 2) / (1.0 + ((effect - centre) ** 2).sum() / 2)
        within = rng.gamma(2.0 + y.size / 2) / (1.0 + ((y - effect[:, None]) ** 2).sum() / 2)
        found["centre"][i], found["between"][i], found["within"][i] = centre, between, within
    return found


def probit(data, draws, rng):
    x, sign = data["x"], 2.0 * data["y"] - 1.0
    covariance = np.linalg.inv(x.T @ x + 0.25 * np.eye(x.shape[1]))
    root, w, found = np.linalg.cholesky(covariance), np.zeros(x.shape[1]), np.zeros((draws, x.shape[1]))
    for i in range(draws):
        mean = x @ w
        below = ndtr(-sign * mean)  # of the side that the outcome leaves out
        utility = mean - sign * ndtri((1.0 - below) * rng.random(len(mean)))
        w = covariance @ (x.T @ utility) + root @ rng.standard_normal(len(w))
        found[i] = w
    return {"w": found}


@numba.njit
def polya_gamma(rng, z):
    """PG(1, z) by Devroye's method. Source: polson2013polya."""
    z, t = abs(z) / 2, 0.64
    rate = np.pi**2 / 8 + z**2 / 2
    p = np.pi / (2 * rate) * np.exp(-rate * t)
    q = 2 * np.exp(-z) * inverse_gaussian_below(t, z)
    while True:
        if rng.random() < p / (p + q):
            x = t + rng.exponential() / rate
        else:
            x = short_inverse_gaussian(rng, z, t)
        total, n = coefficient(0, x, t), 0
        bound = rng.random() * total
        while True:
            n += 1
            if n % 2:
                total -= coefficient(n, x, t)
                if bound <= total:
                    return x / 4
            else:
                total += coefficient(n, x, t)
                if bound > total:
                    break


@numba.njit
def coefficient(n, x, t):
    half = n + 0.5
    if x > t:
        return np.pi * half * np.exp(-(half**2) * np.pi**2 * x / 2)
    return np.pi * half * (2 / (np.pi * x)) ** 1.5 * np.exp(-2 * half**2 / x)


@numba.njit
def normal_below(x):
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


@numba.njit
def inverse_gaussian_below(t, z):
    a, b = np.sqrt(1 / t) * (t * z - 1), -np.sqrt(1 / t) * (t * z + 1)
    return normal_below(a) + np.exp(2 * z) * normal_below(b)


@numba.njit
def short_inverse_gaussian(rng, z, t):
    if z < 1 / t:
        while True:
            while True:
                first, second = rng.exponential(), rng.exponential()
                if first**2 <= 2 * second / t:
                    break
            x = t / (1 + t * first) ** 2
            if rng.random() <= np.exp(-(z**2) * x / 2):
                return x
    mean = 1 / z
    while True:
        y = rng.standard_normal() ** 2
        x = mean + mean**2 * y / 2 - mean / 2 * np.sqrt(4 * mean * y + (mean * y) ** 2)
        if rng.random() > mean / (mean + x):
            x = mean**2 / x
        if x <= t:
            return x


@numba.njit
def logistic_chain(rng, x, kappa, draws):
    n, d = x.shape
    w, found = np.zeros(d), np.zeros((draws, d))
    weights = np.zeros(n)
    linear = x.T @ kappa
    for i in range(draws):
        score = x @ w
        for j in range(n):
            weights[j] = polya_gamma(rng, score[j])
        root = np.linalg.cholesky(x.T @ (weights.reshape(-1, 1) * x) + 0.25 * np.eye(d))
        z = np.zeros(d)
        for j in range(d):
            z[j] = rng.standard_normal()
        w = np.linalg.solve(root.T, np.linalg.solve(root, linear) + z)
        found[i] = w
    return found


def logistic(data, draws, rng):
    return {"w": logistic_chain(rng, data["x"], data["y"] - 0.5, draws)}


@numba.njit
def drawn_states(rng, y, centre, precision, share):
    z = np.zeros(len(y), np.int64)
    p = np.zeros(len(centre))
    for i in range(len(y)):
        for k in range(len(centre)):
            p[k] = share[k] * np.sqrt(precision[k]) * np.exp(-0.5 * precision[k] * (y[i] - centre[k]) ** 2)
        u, k = rng.random() * p.sum(), 0
        while k < len(p) - 1 and u > p[k]:
            u -= p[k]
            k += 1
        z[i] = k
    return z


def mixture(data, draws, rng):
    y = data["y"]
    centre, precision, share, found = rng.normal(0, 3, 3), np.ones(3), np.full(3, 1 / 3), np.zeros((draws, 3))
    for i in range(draws):
        z = drawn_states(rng, y, centre, precision, share)
        count, total, squares = (np.bincount(z, v, minlength=3) for v in (np.ones(len(y)), y, y**2))
        weight = 0.04 + count * precision
        centre = precision * total / weight + rng.standard_normal(3) / np.sqrt(weight)
        precision = rng.gamma(2 + count / 2) / (1 + (squares - 2 * centre * total + count * centre**2) / 2)
        share = rng.dirichlet(1 + count)
        found[i] = centre
    return {"centre": found}


def factor_model(data, draws, rng):
    y = data["y"]
    columns, samples, k = *y.shape, cases.FACTORS
    loading, noise = rng.standard_normal((columns, k)), np.ones(columns)
    found = {"noise": np.zeros((draws, columns)), "loading": np.zeros((draws, columns, k))}
    for i in range(draws):
        root = np.linalg.cholesky(np.eye(k) + (loading.T * noise) @ loading)
        means = np.linalg.solve(root, (loading.T * noise) @ y)
        score = np.linalg.solve(root.T, means + rng.standard_normal((k, samples)))
        roots = np.linalg.cholesky(np.eye(k) + noise[:, None, None] * (score @ score.T))
        means = np.linalg.solve(roots, (noise[:, None] * (y @ score.T))[..., None])
        loading = np.linalg.solve(roots.transpose(0, 2, 1), means + rng.standard_normal((columns, k, 1)))[..., 0]
        noise = rng.gamma(2 + samples / 2, size=columns) / (1 + ((y - loading @ score) ** 2).sum(1) / 2)
        found["noise"][i], found["loading"][i] = noise, loading
    return found


@numba.njit
def drawn_path(rng, density, change):
    n, k = density.shape
    ahead, z = np.zeros((n, k)), np.zeros(n, np.int64)
    ahead[0] = density[0] / density[0].sum()
    for t in range(1, n):
        row = (ahead[t - 1] @ change) * density[t]
        ahead[t] = row / row.sum()
    for t in range(n - 1, -1, -1):
        p = ahead[t] if t == n - 1 else ahead[t] * change[:, z[t + 1]]
        u, s = rng.random() * p.sum(), 0
        while s < k - 1 and u > p[s]:
            u -= p[s]
            s += 1
        z[t] = s
    return z


def hmm(data, draws, rng):
    y = data["y"]
    centre, precision, change = rng.normal(0, 3, 3), 1.0, np.full((3, 3), 1 / 3)
    found = {"centre": np.zeros((draws, 3)), "precision": np.zeros(draws)}
    for i in range(draws):
        z = drawn_path(rng, np.exp(-0.5 * precision * (y[:, None] - centre) ** 2) + 1e-300, change)
        count, total = np.bincount(z, minlength=3), np.bincount(z, y, minlength=3)
        weight = 0.04 + count * precision
        centre = precision * total / weight + rng.standard_normal(3) / np.sqrt(weight)
        precision = rng.gamma(2 + len(y) / 2) / (1 + ((y - centre[z]) ** 2).sum() / 2)
        moves = np.bincount(3 * z[:-1] + z[1:], minlength=9).reshape(3, 3)
        change = np.stack([rng.dirichlet(1 + row) for row in moves])
        found["centre"][i], found["precision"][i] = centre, precision
    return found


@numba.njit
def drawn_topics(rng, document, word, theta, phi):
    z = np.zeros(len(word), np.int64)
    for i in range(len(word)):
        p = theta[document[i]] * phi[:, word[i]]
        u, k = rng.random() * p.sum(), 0
        while k < len(p) - 1 and u > p[k]:
            u -= p[k]
            k += 1
        z[i] = k
    return z


def topics(data, draws, rng):
    document, word, k = data["document"], data["word"], cases.TOPICS
    theta, phi = np.full((cases.DOCUMENTS, k), 1 / k), rng.dirichlet(np.full(cases.WORDS, 0.1) + 0.1, k)
    found = {"theta": np.zeros((draws, *theta.shape)), "phi": np.zeros((draws, *phi.shape))}
    for i in range(draws):
        z = drawn_topics(rng, document, word, theta, phi)
        own = np.bincount(k * document + z, minlength=theta.size).reshape(theta.shape)
        words = np.bincount(cases.WORDS * z + word, minlength=phi.size).reshape(phi.shape)
        gammas = rng.standard_gamma(0.5 + own), rng.standard_gamma(0.1 + words)
        theta, phi = (g / g.sum(-1, keepdims=True) for g in gammas)
        found["theta"][i], found["phi"][i] = theta, phi
    return found


CHAINS = {
    "hierarchical normal": hierarchical,
    "probit regression": probit,
    "logistic regression": logistic,
    "mixture of normals": mixture,
    "factor model": factor_model,
    "hidden Markov model": hmm,
    "topics": topics,
}


def sampler(case):
    def sample(draws, warmup, seed):
        found = CHAINS[case](cases.DATA[case], warmup + draws, np.random.default_rng(seed))
        return {name: array[None, warmup:] for name, array in found.items()}

    return sample
