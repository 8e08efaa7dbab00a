"""Leave-one-out predictive densities log p(y_i | all other y), read off the cavities: nothing is fitted again.

Under EP the cavity of an instance is the posterior without it, and the evidence of its factor under the cavity is the
density asked for. Under VMP the message of an instance is taken from the beliefs, and the factor is integrated over
what is left.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from ..compiler.expressions import Expr, Gather, Let, Random, parents
from ..compiler.graph import Block
from ..compiler.methods import EP
from ..factors.quadrature import HALF_LOG_2PI
from .beliefs import family_of
from .energy import block_energy
from .evaluate import Scope, known, moments, value
from .placed import Placed, mapped, spread
from .tilted import site_messages

if TYPE_CHECKING:
    from .posterior import Posterior

BATCH = 64  # instances taken out at a time
LOG_PRECISIONS = np.linspace(-14.0, 14.0, 281)  # in sds of the logarithm of a Gamma precision


@dataclasses.dataclass(frozen=True)
class LeaveOneOut(Mapping[str, np.ndarray]):
    """log p(y_i | all other observations) by observed variable, shaped as its plates; NaN where y_i is missing.

    `total` is the sum over all, the estimate of the expected log predictive density; `unavailable` gives the reason for
    each observed variable that has none.
    """

    densities: dict[str, np.ndarray]
    unavailable: dict[str, str]

    @property
    def total(self) -> float:
        """The sum of all log predictive densities."""
        return float(sum(np.nansum(array) for array in self.densities.values()))

    def __getitem__(self, name: str) -> np.ndarray:
        if name in self.unavailable:
            raise KeyError(f"No leave-one-out density of '{name}': {self.unavailable[name]}")
        if name not in self.densities:
            raise KeyError(f"'{name}' is not an observed random variable. There are: {', '.join(self) or 'none'}.")
        return self.densities[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.densities)

    def __len__(self) -> int:
        return len(self.densities)

    def __repr__(self) -> str:
        lines = [f"leave-one-out log predictive density: {self.total:.6g}"]
        for name, array in self.densities.items():
            place = np.unravel_index(np.nanargmin(array), array.shape) if array.size else ()
            where = f" (lowest {np.nanmin(array):.4g} at {', '.join(map(str, place)) or 'its only element'})"
            lines.append(f"  {name}: {np.nansum(array):.6g} over {np.sum(np.isfinite(array))} observations{where}")
        lines += [f"  {name}: not available. {reason}" for name, reason in self.unavailable.items()]
        return "\n".join(lines)


def leave_one_out(posterior: Posterior) -> LeaveOneOut:
    """The leave-one-out log predictive densities of every observed random variable; see `LeaveOneOut`.

    Exact where the posterior is Gaussian or conjugate; else as accurate as the approximation that the cavities belong
    to. Under VMP it takes one gradient of the factor for each instance.
    Source: opper2000gaussian, vehtari2016loo.
    """
    densities: dict[str, np.ndarray] = {}
    reasons: dict[str, str] = {}
    with jax.enable_x64(True):
        for name in posterior._program.model.randoms:
            if name not in posterior._binding.observed:
                continue
            found = _of(posterior, name)
            if isinstance(found, str):
                reasons[name] = found
            else:
                missing = posterior._binding.missing.get(name)
                densities[name] = found if missing is None else np.where(missing, np.nan, found)
    return LeaveOneOut(densities, reasons)


def _of(posterior: Posterior, name: str) -> np.ndarray | str:
    """The densities of one observed variable, or why there are none."""
    model, machine = posterior._program.model, posterior._machine
    node = model.randoms[name]
    users = [other for other in _users(model, node) if other != name]
    if users:
        return f"'{users[0]}' depends on it, so an element of it cannot be left out of one factor alone."
    blocks = [(str(i), block) for i, block in enumerate(machine.graph.blocks) if block.out is node]
    if len(blocks) != 1 or blocks[0][1].gates:
        return (
            "It is generated behind a gate or by several factors, whose cavities do not combine instance by instance."
        )
    ((number, block),) = blocks
    if block.kind == "site":
        whole = dataclasses.replace(block, method=EP)  # also a power of a factor leaves as a whole
        evidence = site_messages(posterior, number, whole)[2].log_evidence
        evidence = jnp.reshape(evidence, [machine.sizes[plate.name] for plate in block.plates])
        plates = block.plates
        if block.over is not None:  # each of its elements has a share
            evidence, plates = evidence.sum(-1), plates[:-1]
        return np.asarray(spread(Placed(evidence, plates), node.plates, machine.sizes))
    if block.kind != "energy":
        return f"Its factor is solved jointly ({block.kind}), not instance by instance."
    predictive = _PREDICTIVE.get(block.factor.name)
    if predictive is None:
        return f"The {block.factor.name} factor has no predictive density in closed form under {block.method}."
    problem = _not_plain(block, posterior)
    return problem or _without_each(posterior, block, node, predictive)


def _users(model: Any, node: Random) -> Iterator[str]:
    named = [*model.randoms.items(), *model.lets.items(), *model.constraints.items()]
    for name, other in named:
        roots = parents(other) if isinstance(other, (Random, Let)) else (other,)
        stack = list(roots)
        while stack:
            expr = stack.pop()
            if expr is node:
                yield name
                break
            if not isinstance(expr, (Random, Let)):
                stack.extend(parents(expr))


def _not_plain(block: Block, posterior: Posterior) -> str:
    """A parameter that must be data, a variable, or an element of one."""
    scope = Scope(posterior._machine.sizes, posterior._arrays, {})
    for edge in _PLAIN[block.factor.name]:
        arg = block.args[edge]
        if not known(arg, scope) and _variable(arg, scope) is None:
            return (
                f"Its {edge} is the expression '{arg}'; only data, a variable or an element of one can be integrated."
            )
    return ""


def _variable(expr: Expr, scope: Scope) -> Random | None:
    """The variable that `expr` is, or is gathered from by data."""
    while isinstance(expr, (Let, Gather)):
        if isinstance(expr, Gather):
            if not known(expr.index, scope):
                return None
            expr = expr.source
        else:
            expr = expr.expression
    return expr if isinstance(expr, Random) else None


def _without_each(posterior: Posterior, block: Block, node: Random, predictive: Any) -> np.ndarray:
    """Takes the message of one instance after the other from the beliefs, and predicts the instance."""
    machine = posterior._machine
    shape = tuple(machine.sizes[plate.name] for plate in node.plates)
    beliefs = {name: tuple(map(jnp.asarray, n)) for name, n in posterior._result.outputs["beliefs"].items()}
    present = f"{node.name} present"

    def one(i, data, beliefs):
        alone = jnp.zeros(int(np.prod(shape))).at[i].set(1.0).reshape(shape)
        scope = machine.scope(data)
        found = {name: machine.moments_of(name, naturals) for name, naturals in beliefs.items()}
        cavities = {}
        for name in block.latent:
            family = family_of(machine.graph.latent[name])

            def energy(own, name=name):
                return block_energy(block, scope.with_data({present: alone}).with_moments({**found, name: own}))

            message = family.pull(found[name], jax.grad(energy)(found[name]))
            cavities[name] = family.from_naturals(jax.tree.map(jnp.subtract, beliefs[name], tuple(message)))
        outside = scope.with_moments({**found, **{name: q.moments() for name, q in cavities.items()}})
        placed = predictive(block, node, outside, cavities)
        return spread(placed, node.plates, machine.sizes).ravel()[i]

    def every(data, beliefs):
        return jax.lax.map(lambda i: one(i, data, beliefs), jnp.arange(int(np.prod(shape))), batch_size=BATCH)

    return np.asarray(jax.jit(every)(posterior._arrays, beliefs)).reshape(shape)


def _read(expr: Expr, scope: Scope, cavities: Mapping[str, Any], parameter: Any) -> Placed:
    """A parameter of the cavity of the variable in `expr`, or of data."""
    return value(expr, scope.with_data({name: parameter(q) for name, q in cavities.items()}))


def _gaussian(block: Block, node: Random, scope: Scope, cavities: Mapping[str, Any]) -> Placed:
    """N(y; m, v + 1 / precision), averaged over a Gamma precision on a grid of its logarithm."""
    mean, precision, y = moments(block.args["mean"], scope, "real"), block.args["precision"], value(node, scope)

    def normal(y, m, t):
        variance = m.variance + 1.0 / t
        return -HALF_LOG_2PI - 0.5 * jnp.log(variance) - 0.5 * (y - m.mean) ** 2 / variance

    if known(precision, scope):
        return mapped(normal, y, mean, value(precision, scope))
    gammas = {name: q for name, q in cavities.items() if hasattr(q, "rate")}
    shape, rate = (_read(precision, scope, gammas, lambda q, part=part: getattr(q, part)) for part in ("shape", "rate"))

    def averaged(y, m, a, b):
        width = jnp.sqrt(jax.scipy.special.polygamma(1, a))
        u = jnp.log(a / b) + width * LOG_PRECISIONS
        log_weight = a * (u + jnp.log(b)) - b * jnp.exp(u) - jax.lax.lgamma(a)
        step = width * (LOG_PRECISIONS[1] - LOG_PRECISIONS[0])
        return jax.nn.logsumexp(log_weight + normal(y, m, jnp.exp(u))) + jnp.log(step)

    return mapped(averaged, y, mean, shape, rate)


def _bernoulli(block: Block, node: Random, scope: Scope, cavities: Mapping[str, Any]) -> Placed:
    """The mean probability of what was seen."""
    p = _read(block.args["probability"], scope, cavities, lambda q: q.mean())
    return mapped(lambda y, p: jnp.log(jnp.where(y, p, 1.0 - p)), value(node, scope), p)


def _categorical(block: Block, node: Random, scope: Scope, cavities: Mapping[str, Any]) -> Placed:
    p = _read(block.args["probability"], scope, cavities, lambda q: q.mean())
    return mapped(lambda y, p: jnp.log(p[y]), value(node, scope), p)


def _poisson(block: Block, node: Random, scope: Scope, cavities: Mapping[str, Any]) -> Placed:
    """A negative binomial."""
    rate, y = block.args["rate"], value(node, scope)
    if known(rate, scope):
        return mapped(lambda y, r: y * jnp.log(r) - r - jax.lax.lgamma(y + 1.0), _floating(y), value(rate, scope))
    a, b = (_read(rate, scope, cavities, lambda q, part=part: getattr(q, part)) for part in ("shape", "rate"))

    def negative_binomial(y, a, b):
        binomial = jax.lax.lgamma(y + a) - jax.lax.lgamma(a) - jax.lax.lgamma(y + 1.0)
        return binomial - a * jnp.log1p(1.0 / b) - y * jnp.log1p(b)

    return mapped(negative_binomial, _floating(y), a, b)


def _floating(placed: Placed) -> Placed:
    return Placed(jnp.asarray(placed.value, float), placed.plates)


_PREDICTIVE = {"gaussian": _gaussian, "bernoulli": _bernoulli, "categorical": _categorical, "poisson": _poisson}
_PLAIN = {
    "gaussian": ("precision",),
    "bernoulli": ("probability",),
    "categorical": ("probability",),
    "poisson": ("rate",),
}
