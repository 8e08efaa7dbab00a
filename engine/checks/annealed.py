"""Weighted draws of a posterior that no single distribution is near: particles on a path from a wide Gaussian to it.

Between the Gaussian q and the density p lie the densities q^(1 - t) p^t. Particles are drawn of q, weighted as t grows,
chosen anew by their weights, and moved by Hamiltonian dynamics that leaves the density at t as it is, until t is one.
They do so on islands, which share no particles: how far the islands differ tells how much the draws are worth, and the
mean of their weights is the evidence. Islands whose moves are too short fall behind the density all alike, which their
differences do not tell: how far moves still bring them does. Source: delmoral2006smc, duane1987hybrid.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy.special import gammaincinv

from ..density.log_density import LogDensity
from .psis import Smoothed
from .reference import Draws, Functions, Reference, centred, entries

ISLANDS = 8
NUMBERS = (512, 256)  # of particles: the first that is affordable
LEAPS = 8  # of a move
KEPT = 0.7  # of the particles count after a step along the path
MOST_STEPS, COMMON = 80, 20  # along the path
MOVES = 3  # after each of them
FINAL, EVERY = 24, 3  # moves of a round at the end, of which every third is kept
ROUNDS = 6
SETTLED = 0.15  # of an sd: a mean, or a spread, that moves farther during a round has not arrived
CREEP, CHANCE = 0.03, 3.0  # nor one that moves farther than this and so many times what chance explains
ACCEPTED = (0.65, 0.85)  # the step is shortened below and lengthened above
ALIKE = 3.0  # islands, of the eight, must count
WIDER, CURVED = 4.0, 1.5  # the variance of q: of the beliefs, and of the curvature where the density is typical
WIDTHS = (0.05, 25.0)  # between which the latter is taken, in variances of the beliefs
MOST_LEFT = 0.9  # of what particles were behind, after their moves: more cannot be told from all

Particles: TypeAlias = Float[np.ndarray, "particle coordinate"]
Snapshots: TypeAlias = Float[np.ndarray, "snapshot particle coordinate"]


class Cloud(NamedTuple):
    """Particles with log p and, but for a constant, log q."""

    z: Particles
    log_p: Float[np.ndarray, " particle"]
    log_q: Float[np.ndarray, " particle"]


class Total(NamedTuple):
    """The log evidence that each island found, and how much of it all of them lack, as far as their moves tell."""

    found: Float[np.ndarray, " island"]
    lag: float

    @property
    def shares(self) -> Float[np.ndarray, " island"]:
        """What each island has of the evidence."""
        found = np.exp(self.found - self.found.max())
        return found / found.sum()

    @property
    def log_mean(self) -> float:
        top = self.found.max()
        return float(top + np.log(np.mean(np.exp(self.found - top))))

    @property
    def error(self) -> float:
        """The standard error of `log_mean`."""
        spread = (ISLANDS * np.sum(self.shares**2) - 1.0) / (ISLANDS - 1)
        return float(np.hypot(np.sqrt(max(spread, 0.0)), self.lag))


class Gaussian(NamedTuple):
    """Where the path begins: the mean, a root of the covariance and its inverse."""

    mean: Float[np.ndarray, " coordinate"]
    root: Float[np.ndarray, "coordinate coordinate"]
    inverse: Float[np.ndarray, "coordinate coordinate"]

    def drawn(self, random: np.random.Generator, number: int, log_density: Callable[[Particles], np.ndarray]) -> Cloud:
        normal = random.normal(size=(number, len(self.mean)))
        z = self.mean + normal @ self.root.T
        log_p = log_density(z)
        return Cloud(z, np.where(np.isfinite(log_p), log_p, -np.inf), -0.5 * np.sum(normal**2, axis=1))

    @property
    def log_total(self) -> float:
        """The logarithm of the integral of q without its constant."""
        return float(np.log(np.diagonal(self.root)).sum() + 0.5 * len(self.mean) * np.log(2.0 * np.pi))


def particles_within(density: LogDensity, most: float) -> int:
    """How many particles there may be where `most` numbers may be worked on; none where that is too few."""
    each = (COMMON * MOVES + 2 * FINAL) * LEAPS * float(entries(density))
    return next((number for number in NUMBERS if number * each <= most), 0)


def annealed_draws(density: LogDensity, call: Functions, start: Draws, seed: int, number: int) -> Reference:
    """Draws of the posterior by `number` particles, several of each; `start` are draws of the beliefs."""
    random, move = np.random.default_rng(seed), _mover(density, number)
    path = _around(call, start)
    cloud = path.drawn(random, number, call.log_density)
    t, step, totals = 0.0, len(path.mean) ** -0.25, np.full(ISLANDS, path.log_total)
    behind = lag = 0.0
    for _ in range(MOST_STEPS):
        ahead = cloud.log_p - cloud.log_q
        if not np.isfinite(ahead).any():
            return _nothing(cloud.z)
        farther = _next(t, ahead)
        log_weights = (farther - t) * ahead.reshape(ISLANDS, -1)
        if np.isneginf(log_weights).all(1).any():
            return _nothing(cloud.z)
        totals += _log_mean(log_weights)
        lag += (farther - t) * behind
        chosen, t = _resampled(random, log_weights), farther
        cloud = Cloud(*(part[chosen] for part in cloud))
        if t == 1.0:
            return _arrived(random, move, cloud, path, step, Total(totals, lag))
        roots, ahead = _roots(cloud.z), cloud.log_p - cloud.log_q
        for _ in range(MOVES):
            cloud, rate = move(cloud, random, step, t, path, roots)
            step *= _longer(rate)
        behind = _behind(ahead, cloud.log_p - cloud.log_q)
    return _nothing(cloud.z)


def _behind(before: Float[np.ndarray, " particle"], after: Float[np.ndarray, " particle"]) -> float:
    """How far the mean of log p - log q still is from that of the density after moves, by what they changed of it.

    Moves that leave a share r of what particles were off change 1 - r of it; r is how far where they are tells where
    they were. The mean is the slope of the log evidence along the path.
    """
    if not (before.std() > 0.0 and after.std() > 0.0):
        return 0.0
    left = float(np.clip(np.corrcoef(before, after)[0, 1], 0.0, MOST_LEFT))
    return left / (1.0 - left) * float(np.mean(after - before))


def _around(call: Functions, start: Draws) -> Gaussian:
    """A Gaussian wider than the beliefs, and than the curvature of the density where it is typical says."""
    mean, sd = start.z.mean(0), start.z.std(0) + 1e-9
    hessian = call.hessian(centred(call, mean)) * np.outer(sd, sd)
    covariance = WIDER * np.eye(len(mean))
    if np.isfinite(hessian).all():
        values, vectors = np.linalg.eigh(-0.5 * (hessian + hessian.T))
        variances = np.clip(1.0 / np.maximum(np.abs(values), 1e-300), *WIDTHS)
        covariance += CURVED * (vectors * variances) @ vectors.T
    root = np.linalg.cholesky(covariance * np.outer(sd, sd))
    return Gaussian(mean, root, np.linalg.inv(root))


Mover: TypeAlias = Callable[..., tuple[Cloud, float]]


def _mover(density: LogDensity, number: int) -> Mover:
    """One move of all particles; the cloud after it, and the mean probability with which a move was accepted."""

    def move(z, momentum, uniform, steps, t, mean, inverse, root, data):
        def height(a):
            log_p, log_q = density.height(a, data), -0.5 * jnp.sum((inverse @ (a - mean)) ** 2)
            log_p = jnp.where(jnp.isfinite(log_p), log_p, -jnp.inf)
            return (1.0 - t) * log_q + t * log_p, (log_p, log_q)

        def looked_at(a):
            (heights, parts), gradient = jax.vmap(jax.value_and_grad(height, has_aux=True))(a)
            return heights, parts, jnp.nan_to_num(gradient, posinf=0.0, neginf=0.0) @ root

        def leap(_, state):
            a, speed, _, _, slope = state
            speed = speed + 0.5 * steps[:, None] * slope
            a = a + steps[:, None] * speed @ root.T
            heights, parts, slope = looked_at(a)
            return a, speed + 0.5 * steps[:, None] * slope, heights, parts, slope

        heights, parts, slope = looked_at(z)
        ended, speed, then, parts_then, _ = jax.lax.fori_loop(0, LEAPS, leap, (z, momentum, heights, parts, slope))
        gain = then - heights - 0.5 * jnp.sum(speed**2 - momentum**2, axis=1)
        gain = jnp.where(jnp.isnan(gain), -jnp.inf, gain)
        accepted = jnp.log(uniform) < gain
        log_p, log_q = (jnp.where(accepted, new, old) for new, old in zip(parts_then, parts, strict=True))
        return jnp.where(accepted[:, None], ended, z), log_p, log_q, jnp.mean(jnp.exp(jnp.minimum(gain, 0.0)))

    each_half = 0, 0, 0, 0, None, None, None, 0, None
    call = density.function("annealed", (number,), lambda *given: jax.vmap(move, each_half)(*given))

    def moved(
        cloud: Cloud, random: np.random.Generator, step: float, t: float, path: Gaussian, roots: np.ndarray
    ) -> tuple[Cloud, float]:
        steps = step * random.uniform(0.4, 1.2, number)  # of different lengths: no particle goes round in circles
        noise, uniform = random.normal(size=cloud.z.shape), random.uniform(size=number)
        halves = [a.reshape(2, -1, *a.shape[1:]) for a in (cloud.z, noise, uniform, steps)]
        *found, rate = call(*halves, np.float64(t), path.mean, path.inverse, roots, density.contents.data)
        return Cloud(*(np.asarray(a).reshape(number, *a.shape[2:]) for a in found)), float(np.mean(rate))

    return moved


def _arrived(
    random: np.random.Generator, move: Mover, cloud: Cloud, path: Gaussian, step: float, total: Total
) -> Reference:
    """Rounds of moves at the end of the path until no mean moves any more: draws from the last of them."""
    rounds: list[Snapshots] = []
    for _ in range(ROUNDS):
        kept, roots = [], _roots(cloud.z)
        for k in range(1, FINAL + 1):
            cloud, rate = move(cloud, random, step, 1.0, path, roots)
            step *= _longer(rate) if k <= EVERY else 1.0
            if k % EVERY == 0:
                kept.append(cloud.z)
        rounds.append(np.stack(kept))
        if len(rounds) > 1 and _has_arrived(rounds[0], *rounds[-2:]):
            return _together(rounds[-1], total)
    return _nothing(cloud.z)


def _has_arrived(first: Snapshots, before: Snapshots, now: Snapshots) -> bool:
    """Whether means stay from one round to the next, and spreads since the first, as far as chance allows to tell.

    Chance is measured by how differently the particles moved: where all creep the same way it is small. In the neck of
    a funnel it is the spread that creeps, ever more slowly.
    """
    mean, sd = now.mean((0, 1)), np.maximum(now.std((0, 1)), 1e-300)
    for power, then in ((1, before), (2, first)):
        ended, begun = ((((own - mean) / sd) ** power).mean(0) for own in (now, then))  # of each particle
        moved = ended - begun
        shift, chance = np.abs(moved.mean(0)), moved.std(0) / np.sqrt(len(moved))
        if np.any(shift >= power * SETTLED) or np.any(shift >= power * CREEP + CHANCE * chance):
            return False
    return True


def _next(t: float, ahead: Float[np.ndarray, " particle"]) -> float:
    """The next point of the path: as far on as leaves enough particles that count."""

    def count(other: float) -> float:
        weights = np.exp((other - t) * (ahead - ahead.max()))
        return weights.sum() ** 2 / np.sum(weights**2)

    enough = KEPT * count(t + 1e-12)  # some may be where the density is zero
    if count(1.0) > enough:
        return 1.0
    low, high = t, 1.0
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if count(middle) > enough else (low, middle)
    return high


def _log_mean(log_weights: Float[np.ndarray, "island particle"]) -> Float[np.ndarray, " island"]:
    top = log_weights.max(1)
    return top + np.log(np.mean(np.exp(log_weights - top[:, None]), axis=1))


def _resampled(random: np.random.Generator, log_weights: Float[np.ndarray, "island particle"]) -> np.ndarray:
    """Which particles go on: on every island those that evenly spaced points of its weights meet."""
    islands, each = log_weights.shape
    ends = np.cumsum(np.exp(log_weights - log_weights.max(1, keepdims=True)), axis=1)
    places = (np.arange(each) + random.uniform(size=(islands, 1))) / each * ends[:, -1:]
    found = [np.searchsorted(own, at) for own, at in zip(ends, places, strict=True)]
    return (np.minimum(found, each - 1) + each * np.arange(islands)[:, None]).ravel()


def _root(z: Particles) -> np.ndarray:
    """A root of the covariance of particles, drawn towards its diagonal where they are few."""
    covariance = np.atleast_2d(np.cov(z.T))
    share = len(z) / (len(z) + 2.0 * z.shape[1])
    return np.linalg.cholesky(share * covariance + np.diag((1.0 - share) * np.diagonal(covariance) + 1e-12))


def _roots(z: Particles) -> Float[np.ndarray, "half coordinate coordinate"]:
    """For each half of the islands the root that the other half tells.

    By its own spread a particle that is far out would make its moves longer in just that direction: particles would
    stay too far out, and the evidence be nats too large where they are not many more than the coordinates.
    """
    first, second = np.split(z, 2)
    return np.stack([_root(second), _root(first)])


def _longer(rate: float) -> float:
    return 0.8 if rate < ACCEPTED[0] else 1.2 if rate > ACCEPTED[1] else 1.0


def _together(kept: Snapshots, total: Total) -> Reference:
    """The draws of all islands, weighted by their evidence, with what they are worth by how far islands differ."""
    snapshots, number, d = kept.shape
    share = total.shares
    z = kept.reshape(snapshots, ISLANDS, number // ISLANDS, d)
    means = z.mean((0, 2))
    mean = share @ means
    variance = share @ ((z - mean) ** 2).mean((0, 2))
    counted = np.sum(share**2)
    between = share**2 @ (means - mean) ** 2 / max(1.0 - counted, 1e-3)
    # The largest of d estimates of a ratio exceeds the ratio itself by about this quantile of a chi-square.
    by_chance = 2.0 * gammaincinv(0.5 * (ISLANDS - 1), d / (d + 1.0)) / (ISLANDS - 1)
    effective = by_chance / float(np.max(between / np.maximum(variance, 1e-300)))
    if 1.0 / counted < ALIKE:
        effective = 0.0  # one island has found what the others have not
    weights = np.broadcast_to((share / (snapshots * (number // ISLANDS)))[:, None], z.shape[:3])
    rows = z.reshape(-1, d)
    worth = Smoothed(weights.ravel(), -np.inf, min(effective, float(len(rows))))
    return Reference(rows, worth, total.log_mean, total.error, annealed=True)


def _nothing(z: Particles) -> Reference:
    """Draws that are worth nothing."""
    return Reference(z, Smoothed(np.full(len(z), 1.0 / len(z)), np.inf, 0.0), -np.inf, np.inf, annealed=True)
