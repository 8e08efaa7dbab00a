"""Auxiliary variables: factors that are Gaussian given a further random number for each instance.

A logistic outcome given a Polya-Gamma number, a probit or ordered probit one given the latent normal, a Student-t or
Laplace one given the precision of its normal. Ordered logistic outcomes, by two Polya-Gamma numbers, and negative
binomial counts, by one of shape y + dispersion, would be Gaussian too: NUTS has 3 to 15 times their effective draws a
second. Source: polson2013polya, albert1993bayesian, geweke1993student, park2008bayesian.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Collection, Iterable, Mapping

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtri

from ...compiler.language.nodes import Apply, Expr, Input, Let, Random, inside
from ...factors import draws
from ...factors.arrays import Array, Key
from ...factors.discrete import bernoulli, binomial, ordered
from ...factors.discrete.ordered import bounds
from ...factors.factor import Factor, Term
from ...factors.real import laplace, student_t
from ...factors.special import hazard, lgamma, log_ndtr, ndtr
from ..density.coordinates import is_known
from ..density.log_density import LogDensity
from ..values.evaluate import value
from ..values.plated import Placed, mapped, spread
from ..values.scope import Scope
from . import polya_gamma

HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)
MOST_TRIALS = 50  # of a binomial outcome, beyond which its Polya-Gamma number takes longer than a step of NUTS
TAIL = 4.0  # sds from which on the mass above is handled by its logarithm


@dataclasses.dataclass(frozen=True)
class Auxiliary:
    """A kind of auxiliary variable.

    `draw(key, out, **arguments)` draws it for arrays of instances, and `log_density(auxiliary, out, **arguments)` is
    the log density of both for one, up to a constant in `auxiliary`. Under a link, `predictor` is the argument of it.
    `summed` names the arguments, and "out" for the outcome, as a function of which the log density of both is not
    known: what stands there is drawn with the auxiliary variable summed out. `serves(**arguments)` tells whether it is
    worth its while under those arguments whose values are known.
    """

    name: str
    draw: Callable[..., Array]
    log_density: Callable[..., Array]
    summed: tuple[str, ...] = ()
    serves: Callable[..., bool] = lambda **known: True


def _normal(out, mean, log_precision):
    return 0.5 * log_precision - HALF_LOG_2PI - 0.5 * jnp.exp(log_precision) * (out - mean) ** 2


def _logistic(omega, out, predictor):
    return (out - 0.5) * predictor - 0.5 * omega * predictor**2 - math.log(2.0)


def _logistic_trials(omega, out, n, predictor):
    ways = lgamma(n + 1.0) - lgamma(out + 1.0) - lgamma(n - out + 1.0)
    return ways + (out - 0.5 * n) * predictor - 0.5 * omega * predictor**2 - n * math.log(2.0)


def _few_trials(n=None, **known):
    """Whether the numbers of trials are known and small: a Polya-Gamma number is a sum of as many."""
    return n is not None and bool(np.max(n, initial=0) <= MOST_TRIALS)


def _probit_draw(key, out, predictor):
    """A normal number around the predictor, above zero where the outcome is true and below it elsewhere."""
    sign = 2.0 * out - 1.0
    low = jnp.where(sign > 0.0, -predictor, predictor)
    return predictor + sign * normal_above(key, low)


def normal_above(key: Key, low: Array) -> Array:
    """A standard normal number above `low`, however far in the tail: its distribution function solved for.

    Far out a uniform number times the mass above has no digits, its logarithm does; Newton's steps on it converge from
    the value that the leading term of the tail has.
    """
    return _above(jnp.log(draws.uniform(key, jnp.shape(low))), low)


def _above(log_uniform: Array, low: Array) -> Array:
    """The number above `low` beyond which the share exp(log_uniform) of the mass above it lies."""
    far = low > TAIL
    near = jnp.where(far, 0.0, low)
    tail = jnp.where(far, low, TAIL)

    def closer(now: tuple[Array, Array]) -> tuple[Array, Array]:
        step, x = now
        moved = x + (log_ndtr(-x) - log_ndtr(-tail) - log_uniform) / hazard(-x)
        return step + 1, jnp.where(far, moved, x)

    start = jnp.where(far, jnp.sqrt(tail**2 - 2.0 * log_uniform), -ndtri(jnp.exp(log_uniform) * ndtr(-near)))
    # A loop, which most often makes no step, where a choice would compute both under vmap.
    return jax.lax.while_loop(lambda now: jnp.any(far) & (now[0] < 4), closer, (jnp.zeros((), int), start))[1]


def normal_between(key: Key, low: Array, high: Array) -> Array:
    """A standard normal number between two bounds, either of which may be infinite: turned to where the tail is."""
    turned = low + high < 0.0
    low, high = jnp.where(turned, -high, low), jnp.where(turned, -low, high)
    beyond = jnp.exp(log_ndtr(-high) - log_ndtr(-low))  # the share of what is above `low` that is above `high` too
    log_share = jnp.log1p(-draws.uniform(key, jnp.shape(low)) * (1.0 - beyond))
    x = jnp.clip(_above(log_share, low), low, high)
    return jnp.where(turned, -x, x)


def _ordered_probit_draw(key, out, score, cutpoints):
    low, high = bounds(out, cutpoints)
    return score + normal_between(key, low - score, high - score)


def _known_cutpoints(cutpoints=None, **known):
    """Whether they are: with random ones NUTS on all has four times the effective draws a second."""
    return cutpoints is not None


def _student(mixing, out, dof, mean, scale):
    half = 0.5 * dof
    prior = half * jnp.log(half) - lgamma(half) + (half - 1.0) * jnp.log(mixing) - half * mixing
    return prior + _normal(out, mean, jnp.log(mixing) - 2.0 * jnp.log(scale))


def _student_draw(key, out, dof, mean, scale):
    rate = 0.5 * (dof + ((out - mean) / scale) ** 2)
    return jnp.exp(draws.log_gamma(key, jnp.broadcast_to(0.5 * (dof + 1.0), jnp.shape(rate))) - jnp.log(rate))


def _laplace(mixing, out, mean, scale):
    """N(out; mean, scale^2 / mixing), and 1 / mixing exponential of mean two."""
    prior = -0.5 / mixing - 2.0 * jnp.log(mixing) - math.log(2.0)
    return prior + _normal(out, mean, jnp.log(mixing) - 2.0 * jnp.log(scale))


def _laplace_draw(key, out, mean, scale):
    """Inverse Gaussian of shape one and mean scale / |out - mean|."""
    gap = jnp.maximum(jnp.abs(out - mean) / scale, 1e-12)
    return draws.inverse_gaussian(key, gap)


def _polya_gamma(key, out, predictor):
    return polya_gamma.draw(key, 1, predictor)


AUXILIARIES: dict[tuple[Factor, str | None], Auxiliary] = {  # by factor, and the link of its first argument
    (bernoulli.factor, "logistic"): Auxiliary("a Polya-Gamma number", _polya_gamma, _logistic),
    (binomial.factor, "logistic"): Auxiliary(
        "a Polya-Gamma number",
        lambda key, out, n, predictor: polya_gamma.draw(key, n, predictor),
        _logistic_trials,
        serves=_few_trials,
    ),
    (bernoulli.factor, "probit"): Auxiliary(
        "the normal number behind it",
        _probit_draw,
        lambda normal, out, predictor: _normal(normal, predictor, 0.0),
        summed=("out",),
    ),
    (ordered.probit, None): Auxiliary(
        "the normal number behind it",
        _ordered_probit_draw,
        lambda normal, out, score, cutpoints: _normal(normal, score, 0.0),
        summed=("out", "cutpoints"),
        serves=_known_cutpoints,
    ),
    (student_t.factor, None): Auxiliary("the precision of its normal", _student_draw, _student),
    (laplace.factor, None): Auxiliary("the precision of its normal", _laplace_draw, _laplace),
}


@dataclasses.dataclass(frozen=True)
class Augmented:
    """A factor with its auxiliary variable, which is among the values under `name`.

    `summed`: the variables and structures that are drawn with the auxiliary variable summed out.
    """

    name: str
    kind: Auxiliary
    out: Expr
    arguments: dict[str, Expr]
    summed: frozenset[str] = frozenset()

    def _placed(self, scope: Scope) -> dict[str, Placed]:
        found = {key: value(arg, scope) for key, arg in {"out": self.out, **self.arguments}.items()}
        return {key: Placed(jnp.asarray(one.value, float), one.plates) for key, one in found.items()}

    def table(self, scope: Scope) -> Placed:
        """The log density of the outcome and the auxiliary variable, by instance."""
        names, placed = zip(*self._placed(scope).items(), strict=True)
        auxiliary = Placed(scope.data[self.name], self.out.plates)

        def density(auxiliary, *rest):
            return self.kind.log_density(auxiliary, **dict(zip(names, rest, strict=True)))

        return mapped(density, auxiliary, *placed, order=self.out.plates)

    def draw(self, key: Key, scope: Scope) -> Array:
        """The auxiliary variable given all others, for every instance."""
        arrays = {name: spread(one, self.out.plates, scope.sizes) for name, one in self._placed(scope).items()}
        return self.kind.draw(key, **arrays)


def auxiliaries_of(
    density: LogDensity, factors: Iterable[str], given: Collection[str], moved: Collection[str] = ()
) -> dict[str, Augmented]:
    """The factors of a joint density that have an auxiliary variable, by name; `given` are the data, of which chains
    change those in `moved`."""
    found, fixed = {}, set(given) - set(moved)
    for name in factors:
        node = density.model.randoms.get(name)
        if node is None or not isinstance(node.term, Term) or name in density.contents.holes:
            continue
        args, kind = _kind_of(node.term, given)
        if kind is None or not kind.serves(**_known({**args, **({"out": node} if name in fixed else {})}, density)):
            continue
        summed = _latent_in([args[key] for key in kind.summed if key in args], fixed)
        summed |= {name} if "out" in kind.summed and name not in fixed else set()
        found[name] = Augmented(f"{name} given its auxiliary variable", kind, node, args, frozenset(summed))
    return found


def _kind_of(term: Term, given: Collection[str]) -> tuple[dict[str, Expr], Auxiliary | None]:
    """The auxiliary variable of a term, and its arguments, one of them the predictor where a link is taken."""
    args = dict(term.args)
    for edge, arg in args.items():
        linked = _linked(arg, given)
        if linked is not None and (kind := AUXILIARIES.get((term.factor, linked.op))) is not None:
            rest = {key: other for key, other in args.items() if key != edge}
            return {**rest, "predictor": linked.args[0]}, kind
    return args, AUXILIARIES.get((term.factor, None))


def _latent_in(exprs: Iterable[Expr], fixed: Collection[str]) -> set[str]:
    """The names of all variables and inputs below expressions that are not fixed."""
    return {node.name for node in inside(exprs) if isinstance(node, (Random, Input)) and node.name not in fixed}


def _known(args: Mapping[str, Expr], density: LogDensity) -> dict[str, np.ndarray]:
    """The values of those arguments that are data."""
    data = {name: array for name, array in density.contents.data.items() if name not in density.discrete}
    scope = density.contents.scope({}, data)
    with jax.ensure_compile_time_eval():
        return {name: np.asarray(value(arg, scope).value) for name, arg in args.items() if is_known(arg, set(data))}


def _linked(expr: Expr, given: Collection[str]) -> Apply | None:
    """The link that an argument applies last, if its value is not given."""
    while isinstance(expr, Let) and expr.name not in given:
        expr = expr.expression
    links = {link for _, link in AUXILIARIES}
    return expr if isinstance(expr, Apply) and expr.op in links else None
