"""Integrating a few scalar parameters over a grid or another design, the rest of the model inferred at every point.

Under VMP a scale parameter is independent of what it scales, which makes both too certain where data are few. Given
the parameter, the rest is often exact; so the posterior is a mixture of conditional posteriors, weighted by their
evidence. All of them are the same compiled program with the parameters as data. rue2009inla made the idea known for
latent Gaussian models; here the inner inference is whatever the compiler chose. Discrete parameters are summed over all
their states: a selector that decides which of two models holds for all data.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from ...compiler.data.bind import Binding
from ...compiler.explain import explain_plan
from ...factors.errors import ModelError, UnsupportedError
from ...factors.families import FOR_DOMAIN, DiscreteFamily, Family
from ..distributions.mixed_over_grid import OnGrid
from ..posterior import Posterior
from ..program import Program
from ..support.asked_arguments import list_of_names
from .at_points import Mixture
from .choice import Choice, affordable, at_any_price
from .conditionals import Conditionals
from .design.designs import MOST, Design
from .design.grid import Grid, together
from .hyperparameters import approximate_scalars, decided, scalars_of
from .integrated import Integrated
from .starts import started, starts_in_words
from .why import integration_in_words, no_grid, too_costly

if TYPE_CHECKING:
    from ..cluster.workers import Workers

Plain = Callable[[], Posterior]


def integrate(
    program: Program, data: Mapping[str, Any], over: Sequence[str] | str, seed: int, workers: Workers = None
) -> Integrated:
    """The posterior with the scalar variables named in `over` integrated over the finest design that holds them.

    `program` is that of the plain inference, which gives the starting point; "auto" takes the fewest scalars that leave
    the rest exact (see `approximate_scalars`). `workers` do the points. Raises ModelError for names that are not
    unobserved scalars or too many of them, and UnsupportedError where no grid can hold what is asked for.
    """
    if not isinstance(over, str):
        over = list_of_names(over, "integrate=")
    binding = program.bind(data)
    choice = at_any_price(program, binding, _chosen(program, binding, over))
    plain = _once(program, data, seed, workers)
    found = _explored(program, data, binding, choice, seed, plain, workers)
    if found is None:
        raise UnsupportedError(
            f"The evidence as a function of {', '.join(choice.names)} has no single peak that {choice.design.title} "
            "can hold. Integrate fewer parameters, or use the plain posterior (leave out integrate=)."
        )
    return found


def within(
    program: Program, data: Mapping[str, Any], seed: int, effort: float, workers: Workers = None
) -> Posterior | Integrated:
    """The posterior integrated over its approximate scalars, where that may be spent and a design holds them.

    Else it is the plain one. See `_choices` for what may be spent.
    """
    binding = program.bind(data)
    plain = _once(started(program, binding, _for_starts(program, effort)), data, seed, workers)
    choice, cheapest = _choices(program, binding, effort)
    if choice is None:
        return plain() if cheapest is None else _remarked(plain(), too_costly(cheapest, effort))
    found = _explored(program, data, binding, choice, seed, plain, workers)
    return _remarked(plain(), no_grid(choice)) if found is None else found


def explained(program: Program, binding: Binding, effort: float) -> str:
    """The plan in words, with what `within` would integrate."""
    plain, effort_of_starts = program.plan_given((), binding), _for_starts(program, effort)
    several = starts_in_words(program, binding, effort_of_starts) if effort_of_starts else ""
    single = explain_plan(plain) + (f"\n{several}" if several else "")
    choice, cheapest = _choices(program, binding, effort)
    if cheapest is None:
        return single
    if choice is None:
        return single + "\n" + too_costly(cheapest, effort)
    given = program.plan_given(choice.names, binding)
    return explain_plan(given, gridded=choice.names) + "\n" + integration_in_words(program, binding, choice, given)


def _choices(program: Program, binding: Binding, effort: float) -> tuple[Choice | None, Choice | None]:
    """What is integrated and the cheapest that would help: for `effort` seconds, with accuracy="best" at any price."""
    if program.options.accuracy != "best":
        return affordable(program, binding, effort) if effort else (None, None)
    names = approximate_scalars(program, binding, MOST, tolerated=False)
    choice = at_any_price(program, binding, names) if names else None
    return choice, choice


def _for_starts(program: Program, effort: float) -> float:
    """The seconds that several starts may take."""
    return np.inf if program.options.accuracy == "best" else effort


def _remarked(plain: Posterior, remark: str) -> Posterior:
    """The same posterior, whose diagnosis says what was not done."""
    result = dataclasses.replace(plain.result, remark=remark)
    return Posterior(plain.request, plain.machine, plain.arrays, plain.binding, result, plain.predictors)


def _once(program: Program, data: Mapping[str, Any], seed: int, workers: Workers) -> Plain:
    """The plain inference, when it is first asked for."""
    if workers is None:
        return cache(partial(program.run, data, seed=seed))
    from ..apart import run_by  # few inferences have workers

    return cache(partial(run_by, program, data, seed, workers))


def _explored(
    program: Program,
    data: Mapping[str, Any],
    binding: Binding,
    choice: Choice,
    seed: int,
    plain: Plain,
    workers: Workers,
) -> Integrated | None:
    conditionals = Conditionals(program, data, binding, choice.names, seed, plain)
    with conditionals.watcher, conditionals.by(workers):
        return _over(conditionals, choice)


def _over(conditionals: Conditionals, choice: Choice) -> Integrated | None:
    """The mixture over all states of the discrete scalars and a design of the others; None where it holds nothing."""
    states = conditionals.states()
    if states is None:
        return None
    if not conditionals.continuous:
        grid = Grid(states, conditionals(states), 0.0, np.zeros(conditionals.discrete), 0.0)
    else:
        found = [_given_state(conditionals, state, choice.design) for state in states]
        known = [grid for grid in found if grid is not None]
        if len(known) < len(found):
            return None
        grid = together(known)
    if conditionals.saturated(grid.points, grid.log_density):
        return None
    return _mixture(conditionals, grid, choice)


def _given_state(conditionals: Conditionals, state: Float[np.ndarray, " k"], design: Design) -> Grid | None:
    """The points of the continuous scalars in one state of the discrete ones, with these as first coordinates."""

    def whole(points: np.ndarray) -> np.ndarray:
        return np.concatenate([np.broadcast_to(state, (len(points), len(state))), points], axis=1)

    # Where the rest iterates, points that are far from all sense might not settle: the grid grows from the peak alone.
    first = None if conditionals.machine.direct else 4 - conditionals.continuous
    grid = design.found(lambda points: conditionals(whole(points)), *conditionals.start, first)
    if grid is None:
        return None
    return grid._replace(points=whole(grid.points), widths=np.concatenate([np.zeros(len(state)), grid.widths]))


def _mixture(conditionals: Conditionals, grid: Grid, choice: Choice) -> Integrated:
    """The posterior as the mixture over the points."""
    weights = np.exp(grid.log_density - grid.log_density.max())
    order = np.argsort(weights)
    least = choice.design.negligible * weights.sum() if conditionals.continuous else 0.0
    negligible = np.cumsum(weights[order]) <= least
    kept = np.sort(order[~negligible])
    weights, points = weights[kept] / weights[kept].sum(), grid.points[kept]
    values = conditionals.values(points)
    columns = zip(conditionals.names, conditionals.kinds, points.T, grid.widths, strict=True)
    families: dict[str, OnGrid | Family] = {
        name: _states(column, weights, kind) if k < conditionals.discrete else OnGrid(column, weights, width, kind)
        for k, (name, kind, column, width) in enumerate(columns)
    }
    mixture = Mixture(values, conditionals.at(points), families, weights, grid.error, grid.log_total())
    return Integrated(conditionals, mixture, choice)


def _states(column: Float[np.ndarray, " K"], weights: Float[np.ndarray, " K"], kind: str) -> Family:
    """The marginal of a discrete parameter from the weights of joint states."""
    totals = np.bincount(column.astype(int), weights, minlength=2)
    with np.errstate(divide="ignore"):
        logs = np.log(totals)
    family = FOR_DOMAIN[kind]
    assert issubclass(family, DiscreteFamily)
    return family.from_logits(logs)


def _chosen(program: Program, binding: Binding, over: Sequence[str] | str) -> tuple[str, ...]:
    scalars = scalars_of(program)
    if over == "auto":
        names = approximate_scalars(program, binding, MOST, tolerated=False)
    else:
        names = (over,) if isinstance(over, str) else tuple(over)
    wrong = [name for name in names if name not in scalars]
    if wrong:
        raise ModelError(
            f"integrate= names {wrong[0]!r}, which is not an unobserved scalar variable without plates. "
            f"This model has: {', '.join(scalars) or 'none'}."
        )
    continuous = [name for name in names if not scalars[name].domain.is_discrete]
    if not names or len(continuous) > MOST:
        what = f"{len(names)} ({', '.join(names)})" if names else "none"
        raise ModelError(
            f"integrate= takes one to {MOST} scalar variables; found {what}. "
            f"Name those that matter most, usually scales: {', '.join(scalars) or 'this model has none'}."
        )
    if len(set(names)) < len(names):
        raise ModelError(f"integrate= names a variable twice: {', '.join(names)}. Name each once.")
    if fixed := decided(program, program.plan_given(tuple(names), binding)):
        raise UnsupportedError(
            f"integrate= names {', '.join(names)}, which alone decide whether '{fixed[0]}' holds, so that its "
            "evidence at a point is zero or one and no grid can hold it. Leave one of them out of integrate=."
        )
    return names
