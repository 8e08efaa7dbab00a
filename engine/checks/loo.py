"""Leave-one-out predictive densities log p(y_i | all other y), read off the cavities: nothing is fitted again.

Under EP the cavity of an instance is the posterior without it, and the evidence of its factor under the cavity is the
density asked for. Under VMP the message of an instance is taken from the beliefs, and the factor is integrated over
what is left.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import logsumexp

from ...compiler.blocks.energy import EnergyBlock
from ...compiler.blocks.site import SiteBlock
from ...compiler.data.keys import is_present
from ...compiler.language.model import Model
from ...compiler.language.nodes import Expr, Gather, Let, Random, parents
from ...compiler.methods import EP
from ...factors.calls import methods_checked
from ...factors.factor import Chain
from ...factors.families import Family
from ...factors.switches import double_precision
from ..answers.inferred import Inferred
from ..answers.outcome import Outcome
from ..blocks.energy import block_energy
from ..density.log_density import LogDensity
from ..support.concrete import as_numpy
from ..values.evaluate import gather, known, value
from ..values.first_beliefs import family_of
from ..values.moments import moments
from ..values.plated import Placed, mapped, spread
from ..values.row_blocks import Rows, beginning_at, divisible
from ..values.scope import Scope
from .psis import GOOD_K, smoothed
from .skewness import end_of, site_messages
from .trust import trust

BATCH = 64  # instances taken out at a time


@methods_checked("loo")
@dataclasses.dataclass(frozen=True)
class LeaveOneOut(Mapping[str, np.ndarray]):
    """log p(y_i | all other observations) by observed variable, shaped as its plates; NaN where y_i is missing.

    `densities` has the arrays by name; `total` is the sum over all, the estimate of the expected log predictive
    density; `unavailable` gives the reason for each observed variable that has none.
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


def leave_one_out(posterior: Outcome) -> LeaveOneOut:
    """The leave-one-out log predictive densities of every observed random variable; see `LeaveOneOut`.

    Exact where the posterior is Gaussian or conjugate; else as accurate as the approximation that the cavities belong
    to. Under VMP it takes one gradient of the factor for each instance.
    Source: opper2000gaussian, vehtari2016loo.
    """
    densities: dict[str, np.ndarray] = {}
    reasons: dict[str, str] = {}
    with double_precision():
        for name in posterior.model.randoms:
            if name not in posterior.binding.observed:
                continue
            found = _of(posterior, name)
            if isinstance(found, str):
                reasons[name] = found
            else:
                missing = posterior.binding.missing.get(name)
                densities[name] = found if missing is None else as_numpy(jnp.where(missing, jnp.nan, found))
    return LeaveOneOut(densities, reasons)


def with_draws(found: LeaveOneOut, posterior: Inferred) -> LeaveOneOut:
    """The same with the densities of what its own factor does not tell, from weighted draws of the joint density.

    Where these are usable: see `engine.checks.trust`.
    """
    witness = trust(posterior, None).witness if found.unavailable else None
    if witness is None:
        return found
    with double_precision():
        draws = as_numpy(witness.call.constrain(witness.found.z))
    drawn = drawn_leave_one_out(witness.density, draws, witness.found.weighted.weights, posterior.binding.missing)
    more = {name: array for name, array in drawn.densities.items() if name in found.unavailable}
    reasons = {name: reason for name, reason in found.unavailable.items() if name not in more}
    return LeaveOneOut({**found.densities, **more}, reasons)


def mixed_leave_one_out(
    densities: Mapping[str, np.ndarray], weights: np.ndarray, unavailable: dict[str, str]
) -> LeaveOneOut:
    """The same for a mixture of posteriors, whose densities are stacked on a first axis, with these weights.

    p(y_i | others) = 1 / sum_k w_k / p_k(y_i | others).
    """

    def mixed(logs: np.ndarray) -> np.ndarray:
        return -logsumexp(-logs, axis=0, b=weights.reshape((-1,) + (1,) * (logs.ndim - 1)))

    return LeaveOneOut({name: mixed(logs) for name, logs in densities.items()}, unavailable)


def drawn_leave_one_out(
    density: LogDensity, values: Mapping[str, np.ndarray], weights: np.ndarray, missing: Mapping[str, np.ndarray]
) -> LeaveOneOut:
    """The same from weighted draws of the joint posterior `density`, by Pareto-smoothed importance sampling.

    `values` has the draws of the latent variables by name, `weights` their probabilities, `missing` which entries were
    not observed. Without y_i a draw has weight w / p(y_i | draw). Where the shape k of these weights is .7 or more for
    an element, the draws do not tell the posterior without it, and the variable has no densities.
    Source: vehtari2016loo, vehtari2024psis.
    """
    densities: dict[str, np.ndarray] = {}
    reasons: dict[str, str] = {}
    for name, node in density.model.randoms.items():
        if name not in density.observed:
            continue
        if problem := _hangs_together(density, node):
            reasons[name] = problem
            continue
        logs = density.terms_of(name, values)
        flat = logs.reshape(len(logs), -1)
        found, worst = np.empty(flat.shape[1]), -np.inf
        with np.errstate(divide="ignore"):
            log_weights = np.log(weights)
        for i, log in enumerate(flat.T):
            without = smoothed(log_weights - log)
            found[i], worst = np.log(without.weights @ np.exp(log - log.max())) + log.max(), max(worst, without.k)
        absent = missing.get(name)
        if worst < GOOD_K:
            shaped = found.reshape(logs.shape[1:])
            densities[name] = shaped if absent is None else np.where(absent, np.nan, shaped)
        else:
            reasons[name] = (
                f"The draws move too far where one of its elements is left out (Pareto k {worst:.2f}): infer again "
                "without that element."
            )
    return LeaveOneOut(densities, reasons)


def _hangs_together(density: LogDensity, node: Random) -> str:
    """Why an element of an observed variable cannot be left out of the joint density by its own factor alone."""
    if users := [other for other in _users(density.model, node) if other != node.name]:
        return f"'{users[0]}' depends on it, so an element of it cannot be left out of one factor alone."
    if isinstance(node.term, Chain):
        return "Its elements depend on each other, so one of them cannot be left out of one factor alone."
    if density.terms.reads_summed(node.name):
        return "It depends on discrete variables that were summed out together with it."
    return ""


def _of(posterior: Outcome, name: str) -> np.ndarray | str:
    """The densities of one observed variable, or why there are none."""
    model, machine = posterior.model, posterior.machine
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
    if isinstance(block, SiteBlock):
        whole = block.chosen(method=EP)  # also a power of a factor leaves as a whole

        def left_out(end, arrays):
            evidence = site_messages(machine, end, arrays, number, whole)[2].log_evidence
            evidence, plates = evidence.reshape([machine.sizes[plate.name] for plate in block.plates]), block.plates
            if block.over is not None:  # each of its elements has a share
                evidence, plates = evidence.sum(-1), plates[:-1]
            return spread(Placed(evidence, plates), node.plates, machine.sizes)

        call = machine.function("left out", (number, node), left_out)
        return as_numpy(call(end_of(posterior, number), posterior.arrays))
    if not isinstance(block, EnergyBlock):
        return f"Its factor is solved jointly ({block.choice.operator}), not instance by instance."
    if block.factor.log_predictive is None:
        return f"The {block.factor.name} factor has no predictive density in closed form under {block.method}."
    problem = _not_plain(block, posterior)
    return problem or _without_each(posterior, block, node)


def _users(model: Model, node: Random) -> Iterator[str]:
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


def _not_plain(block: EnergyBlock, posterior: Outcome) -> str:
    """A parameter that must be data, a variable, or an element of one."""
    if block.composed is not None:
        return f"Its arguments are composed of {', '.join(map(str, block.composed.numbers))}, which VMP takes apart."
    scope = Scope(posterior.machine.sizes, posterior.arrays, {})
    for edge, arg in block.args.items():
        if block.factor.edges[edge] != "real" and not known(arg, scope) and _variable(arg, scope) is None:
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


def _without_each(posterior: Outcome, block: EnergyBlock, node: Random) -> np.ndarray:
    """Takes the message of one instance after the other from the beliefs, and predicts the instance."""
    machine = posterior.machine
    shape = tuple(machine.sizes[plate.name] for plate in node.plates)
    rows = _rows_apart(posterior, block, node)
    beliefs = {name: tuple(n) for name, n in posterior.result.outputs["beliefs"].items()}
    present = is_present(node.name)

    def one(i, data, beliefs):
        scope, place = machine.scope(data), i
        if rows is not None:  # the others would be computed for each instance, to be counted as nothing
            axis, where = node.plates.index(rows.plate), list(jnp.unravel_index(i, shape))
            scope = beginning_at(scope, rows, where[axis])
            where[axis] = jnp.zeros_like(i)
            place = jnp.ravel_multi_index(where, [scope.sizes[plate.name] for plate in node.plates], mode="clip")
        alone = jnp.zeros(int(np.prod(shape))).at[i].set(1.0).reshape(shape)
        found = {name: machine.moments_of(name, naturals) for name, naturals in beliefs.items()}
        cavities = {}
        for name in block.latent:
            family = family_of(machine.graph.latent[name])

            def energy(own, name=name):
                return block_energy(block, scope.with_data({present: alone}).with_moments({**found, name: own}))

            message = family.pull(found[name], jax.grad(energy)(found[name]))
            cavities[name] = family.from_naturals(jax.tree.map(jnp.subtract, beliefs[name], tuple(message)))
        outside = scope.with_moments({**found, **{name: q.moments() for name, q in cavities.items()}})
        placed = _predictive(block, node, outside, cavities)
        return spread(placed, node.plates, scope.sizes).ravel()[place]

    def every(data, beliefs):
        return jax.lax.map(lambda i: one(i, data, beliefs), jnp.arange(int(np.prod(shape))), batch_size=BATCH)

    function = machine.function("without each", (block, node), every)
    return as_numpy(function(posterior.arrays, beliefs)).reshape(shape)


def _rows_apart(posterior: Outcome, block: EnergyBlock, node: Random) -> Rows | None:
    """The longest plate of which the factor can be computed for one row by itself."""
    machine = posterior.machine
    apart = [plate for plate in node.plates if divisible(machine.graph, block, plate)]
    longest = max(apart, key=lambda plate: machine.sizes[plate.name], default=None)
    return None if longest is None else Rows(longest, machine.sizes[longest.name], 1)


def _predictive(block: EnergyBlock, node: Random, scope: Scope, cavities: Mapping[str, Family]) -> Placed:
    """log E f of every instance: real arguments as moments, others as what is known of them or as the cavity."""
    edges = list(block.args)

    def argument(edge: str) -> Placed:
        arg = block.args[edge]
        if block.factor.edges[edge] == "real":
            return moments(arg, scope, "real")
        return value(arg, scope) if known(arg, scope) else _cavity(arg, scope, cavities)

    def density(out, *arguments):
        return block.factor.log_predictive(out, **dict(zip(edges, arguments, strict=True)))

    seen = value(node, scope)
    if node.domain.is_count:
        seen = Placed(jnp.asarray(seen.value, float), seen.plates)
    return mapped(density, seen, *map(argument, edges))


def _cavity(expr: Expr, scope: Scope, cavities: Mapping[str, Family]) -> Placed:
    """The cavity of the variable that `expr` is, or of its elements at known places."""
    if isinstance(expr, Let):
        return _cavity(expr.expression, scope, cavities)
    if isinstance(expr, Gather):
        return gather(_cavity(expr.source, scope, cavities), value(expr.index, scope), expr)
    assert isinstance(expr, Random)
    return Placed(cavities[expr.name], expr.plates)
