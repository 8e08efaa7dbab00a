"""The negative binomial factors: a Poisson count whose rate is Gamma distributed."""

from __future__ import annotations

import jax.numpy as jnp

from ..arrays import Argument
from ..domains import count
from ..errors import ModelError
from ..factor import Factor, Site, Term, register, told_with_name
from ..families import Poisson
from ..moments import Count, Positive, Unit
from ..quadrature import tilted_site
from ..quadrature.derived import positive_expectation
from ..rules import inner
from ..special import lgamma, log_sigmoid


def _log_ways(out, dispersion):
    return lgamma(out + dispersion) - lgamma(dispersion) - lgamma(out + 1.0)


def _log_density(out, mean, dispersion):
    share = jnp.log(dispersion + mean)
    return _log_ways(out, dispersion) + out * (jnp.log(mean) - share) + dispersion * (jnp.log(dispersion) - share)


def _exp_site(out, mean, variance, power=1.0, dispersion=1.0) -> Site:
    ways, level = _log_ways(out, dispersion), jnp.log(dispersion)

    def log_factor(s):
        return power * (ways + out * log_sigmoid(s - level) + dispersion * log_sigmoid(level - s))

    return tilted_site(log_factor, mean, variance)


by_mean = register(
    Factor(
        name="negative_binomial",
        edges={"mean": "positive", "dispersion": "positive"},
        out=lambda domains: count,
        log_density=_log_density,
        predict=lambda mean, dispersion: Poisson(jnp.log(mean.mean)),
        sites={"exp": _exp_site},
        site_edge="mean",
        source="hilbe2011negative",
    )
)


def _log_density_of_trials(out, successes, probability):
    return _log_ways(out, successes) + successes * jnp.log(probability) + out * jnp.log1p(-probability)


def _expected_log_of_trials(out: Count, successes: Positive, probability: Unit):
    ways = lgamma(out.mean + successes.mean) - lgamma(successes.mean) - out.log_factorial
    return ways + successes.mean * probability.log + out.mean * probability.log_complement


def _with_random_successes(out: Count, successes: Positive, probability: Unit):
    def ways(r, log_r):  # log gamma(out + r) - log gamma(r) from the gamma functions past their pole
        return lgamma(out.mean + r) - lgamma(r + 1.0) + log_r

    linear = successes.mean * probability.log + out.mean * probability.log_complement
    return positive_expectation(ways, successes) - out.log_factorial + linear


by_trials = register(
    Factor(
        name="negative_binomial_trials",
        edges={"successes": "positive", "probability": "unit"},
        out=lambda domains: count,
        log_density=_log_density_of_trials,
        expected_log=_expected_log_of_trials,
        predict=lambda successes, probability: Poisson(
            jnp.log(successes.mean) + probability.log_complement - probability.log
        ),
        with_random=lambda random: _with_random_successes if "successes" in random else None,
        conjugate=frozenset({"probability"}),
        unsupported={"out": "its normaliser has no closed-form expectation; observe it, or use mean= and dispersion="},
        rules=(inner("probability"),),
        source="hilbe2011negative",
    )
)


@told_with_name
def negative_binomial(
    mean: Argument = None, dispersion: Argument = None, *, successes: Argument = None, probability: Argument = None
) -> Term:
    """A negative binomial count, in one of two parameterisations.

    `mean` > 0 and `dispersion` > 0: variance mean + mean^2 / dispersion, Poisson as `dispersion` grows. `mean` may be
    numbers, an input, a `gamma` variable or `exp` of a real expression. Or `successes` > 0 and `probability` in (0, 1):
    failures before that many successes, gamma(x + r) / (gamma(r) x!) p^r (1 - p)^x; `probability` may be a `beta`
    variable. Returns a term for `Model.random`, which raises ModelError unless exactly one pair is given. Source:
    hilbe2011negative.
    """
    pairs = (mean, dispersion), (successes, probability)
    given = [[value is not None for value in pair] for pair in pairs]
    if given == [[True, True], [False, False]]:
        return Term(by_mean, {"mean": mean, "dispersion": dispersion})
    if given == [[False, False], [True, True]]:
        return Term(by_trials, {"successes": successes, "probability": probability})
    raise ModelError(
        "negative_binomial() needs either mean= and dispersion=, or successes= and probability=. Write for example "
        "cv.negative_binomial(mean=5.0, dispersion=2.0)."
    )
