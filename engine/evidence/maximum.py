"""The values of largest density: maximum a posteriori, and maximum likelihood where priors are left out.

The density is that of the values themselves: the climb goes in unconstrained coordinates, without their Jacobian, so
that the maximum is where it would be in any coordinates. Several starts climb by one compiled slope.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...compiler.data.bind import Binding
from ...compiler.language.model import Model
from ...compiler.language.nodes import Random, inside, parents
from ...compiler.schedules import Schedule, checked_schedule
from ...factors.arrays import Array
from ...factors.calls import call_checked, methods_checked
from ...factors.errors import ModelError, UnsupportedError
from ...factors.switches import double_precision
from ..answers.inferred import Inferred
from ..data.rules_of_arguments import bind_checked
from ..density.expressions_at_draws import values_of_expressions
from ..density.log_density import LogDensity
from ..options import key_of
from ..support.asked_arguments import check_counts, list_of_names, the_model
from ..support.compiled import Call
from ..support.warn import warn
from ..tempering.path import Path
from .ends import EDGE, FAR, FLAT, INSIDE, Judged, judged
from .mode import Vector, climbed, first_place, slopes_of

SAME = 1e-6  # nats, times the height: starts that ended at one maximum
RANKS = {INSIDE: 0, EDGE: 0, FLAT: 1}  # of ends: those that rise without end come last
REACH = 2.0  # of starts where the prior has no draws, in unconstrained coordinates
METHODS = ("climb", "em")
SHOWN = 4  # elements of a variable in a table


@methods_checked("maximum")
@dataclasses.dataclass(frozen=True)
class Maximum:
    """The values where a joint density is largest.

    Attributes:
        model: whose density it is.
        values: by name, shaped plates + event, of all continuous unknowns and of the named expressions of them.
        log_density: log p(values, data) there, without the terms that were left out; its terms with Jacobian, if any.
        converged: whether it is a maximum, and no more than one point.
        at_edge: the variables with elements at an edge of their domain, where the density has its limit.
        starts: (starts,) the log density where each start ended, best first; infinity where it rises without end.
        summed, flat, jacobian: what was summed out, whose priors were left out, whether the Jacobian was added.
        diagnosis: a sentence.
    """

    model: Model
    values: dict[str, np.ndarray]
    log_density: float
    converged: bool
    at_edge: tuple[str, ...]
    starts: np.ndarray
    summed: tuple[str, ...]
    flat: tuple[str, ...]
    jacobian: bool
    diagnosis: str

    def __getitem__(self, name: str) -> np.ndarray:
        """The value of a variable or a named expression; KeyError for another name."""
        if name not in self.values:
            raise KeyError(f"The maximum has no value of {name!r}. It has: {', '.join(self.values)}.")
        return self.values[name]

    def explain(self) -> str:
        """What was maximised, over what, and how the climb ended."""
        over = ", ".join(name for name in self.values if name in self.model.randoms)
        lines = [f"The joint density of {self.model.name!r} and its data, largest over {over}."]
        lines += [f"Summed out: {', '.join(self.summed)}."] * bool(self.summed)
        lines += [f"Without the prior terms of: {', '.join(self.flat)}."] * bool(self.flat)
        space = "unconstrained coordinates (with the Jacobian)" if self.jacobian else "the variables themselves"
        return "\n".join([*lines, f"It is the density of {space}.", self.diagnosis])

    def summary(self) -> str:
        """A table of the values, the log density and how the climb ended; a text to print."""
        shapes = {name: "x".join(str(size) for size in value.shape) or "scalar" for name, value in self.values.items()}
        rows = [(name, shapes[name], _brief(value)) for name, value in self.values.items()]
        widths = [max(len(row[i]) for row in [*rows, ("variable", "shape")]) for i in range(2)]
        table = [("variable", "shape", "value"), *rows]
        lines = [f"{a.ljust(widths[0])}  {b.ljust(widths[1])}  {c}" for a, b, c in table]
        return "\n".join([*lines, f"log density {self.log_density:.8g}; {self.diagnosis}"])

    def __repr__(self) -> str:
        found = ", ".join(f"{name} {_brief(value)}" for name, value in self.values.items())
        return f"<Maximum of {self.model.name!r}: {found}; log density {self.log_density:.6g}; {self.diagnosis}>"


@call_checked
def map(
    model: Model,
    data: Mapping[str, Any],
    sizes: Mapping[str, int] | None = None,
    *,
    flat: bool | Sequence[str] = False,
    jacobian: bool = False,
    start: Mapping[str, Any] | None = None,
    method: str = "climb",
    schedule: str | Schedule = "sequential",
    restarts: int = 4,
    seed: int = 0,
) -> Maximum:
    """The values of the continuous unknowns of largest joint density (MAP), discrete ones summed out.

    Args:
        model: with at most some thousand numbers that are neither data nor summed out.
        data, sizes: as of `infer`.
        flat: True leaves out the terms of all continuous unknowns, for maximum likelihood; a list of names those of
            these alone, as of the parameters of a model with random effects.
        jacobian: False takes the density of the variables themselves; True that of unconstrained coordinates (of
            logarithms of positive numbers), whose maximum is that of `laplace_approximation`.
        start: values of variables where the first climb begins, or a posterior, for its means; by default one for
            positive ones, zero in unconstrained coordinates.
        method: "climb" goes up the slope of the density; "em" first makes passes of expectation maximisation, which are
            for mixtures of conjugate parts with known priors, and climbs from where they end.
        schedule: of "em": batches of rows take turns as of `infer`, "sequential" one row at a time (incremental EM).
        restarts: how many climbs; all after the first begin from draws of the prior, or, where there are none, within
            two of the first in unconstrained coordinates.
        seed: of these draws.

    Returns:
        `Maximum`, the best that was found. Warns (`CavityWarning`) where it is not one point, or where other starts
        rose without end.

    Raises:
        DataError, UnsupportedError: as `log_density`; a density that jumps; `flat` variables that nothing else tells
            of; a density that rises without end from every start, with the variables that it rises with.
        ModelError: arguments out of range, names in `flat` that are no continuous unknowns.

    Source: paquet2007thesis, neal1998em.
    """
    check_counts("map", restarts=restarts)
    _check_method(method, schedule, jacobian, start)
    key = key_of(seed)
    binding = bind_checked(the_model(model), data, sizes)
    density = _density_of(model, binding, flat)
    with double_precision():
        if method == "em":
            places = _by_em(density, binding, schedule, restarts, key)
        else:
            first = first_place(density, _values_of(start, density))
            places = [first, *_drawn(density, binding, first, key, restarts - 1)]
        found = _found(density, jacobian, ends := _ends(density, jacobian, places))
    if not found.converged or any(end.endless for end in ends):
        warn(found.diagnosis)
    return found


def _check_method(method: object, schedule: object, jacobian: bool, start: object) -> None:
    if not isinstance(method, str) or method not in METHODS:
        raise ModelError(f"map(method={method!r}): it is {' or '.join(repr(name) for name in METHODS)}.")
    if method == "em" and (jacobian or start is not None):
        raise ModelError(
            "map(method='em') is the largest density of the variables themselves, from starts of its own. Leave "
            "jacobian= and start= out, or take method='climb'."
        )
    if method != "em" and checked_schedule(schedule) != checked_schedule("sequential"):
        raise ModelError("map(schedule=) is the order of rows in method='em'; a climb sees all of them at once.")


def _by_em(
    density: LogDensity, binding: Binding, schedule: str | Schedule, restarts: int, key: np.ndarray
) -> list[Vector]:
    """Where passes of expectation maximisation end, in unconstrained coordinates."""
    from .em import maximised  # it loads the engine of message passing, which climbs do without

    found = maximised(density.model, binding, density.flat, schedule, restarts, key)
    return [np.asarray(density.unconstrain({name: one.values[name] for name in density.names})) for one in found]


def _ends(density: LogDensity, jacobian: bool, places: list[Vector]) -> list[Judged]:
    """Where climbs from these places end, best first."""
    height = density.height if jacobian else _own_space(density)
    slope, hessian = slopes_of(density, "map with jacobian" if jacobian else "map", height)
    begun = [place for place in places if np.isfinite(slope(place)[0])] or places[:1]
    ends = [judged(density, slope, hessian, climbed(slope, hessian, place)) for place in begun]
    return sorted(ends, key=lambda end: (RANKS.get(end.kind, 2 + end.endless), -end.height))


def _found(density: LogDensity, jacobian: bool, ends: list[Judged]) -> Maximum:
    """The best end as a value; UnsupportedError where all rise without end."""
    best = ends[0]
    if best.endless:
        raise UnsupportedError(_no_maximum(best))
    stacked = {name: np.asarray(value)[None] for name, value in density.constrain(best.place).items()}
    stacked |= values_of_expressions(density, stacked)
    return Maximum(
        model=density.model,
        values={name: value[0] for name, value in stacked.items()},
        log_density=best.height,
        converged=best.kind in (INSIDE, EDGE),
        at_edge=best.names if best.kind == EDGE else (),
        starts=np.array([np.inf if end.endless else end.height for end in ends]),
        summed=density.summed,
        flat=density.flat,
        jacobian=jacobian,
        diagnosis=_told(best, ends),
    )


def _density_of(model: Model, binding: Binding, flat: bool | Sequence[str]) -> LogDensity:
    density = LogDensity(model, binding, ordered=False)
    if density.hard:
        raise UnsupportedError(
            f"The constraint '{density.hard[0]}' makes the density jump to zero, and a maximum at such an edge has no "
            "slope that leads to it. Give what is compared some noise, or draw with cv.sample."
        )
    if not density.names:
        raise UnsupportedError(
            f"All unknowns of {model.name!r} are discrete or integrated out, or no data depend on them: there is "
            "nothing to climb in. cv.infer gives their probabilities."
        )
    if flat is False:
        return density
    names = density.names if flat is True else list_of_names(flat, "map(flat=...)")
    if unknown := [name for name in names if name not in density.names]:
        raise ModelError(
            f"flat= names '{unknown[0]}', which is no continuous unknown. There are: {', '.join(density.names)}."
        )
    _check_told(density, set(names))
    return LogDensity(model, binding, flat=names)


def _check_told(density: LogDensity, flat: set[str]) -> None:
    """UnsupportedError where no term that is left reads a variable whose own is left out."""
    kept = [node for node in density.contents.terms if node.name not in flat]
    roots = [root for node in kept for root in parents(node)] + [expr for expr, _ in density.contents.events.values()]
    read = {node.name for node in inside(roots) if isinstance(node, Random)}
    if lost := [name for name in density.names if name in flat - read]:
        raise UnsupportedError(
            f"With the prior terms left out nothing tells of '{lost[0]}': only variables that are flat depend on it. "
            f"Name those whose priors are to be left out, such as flat=['{lost[0]}']; what is drawn given it then "
            "keeps its own term."
        )


def _own_space(density: LogDensity) -> Any:
    def height(z: Array, data: Mapping[str, Any]) -> Array:
        return density.terms.density(density.coordinates.values(z, data), data)

    return height


def _values_of(start: Mapping[str, Any] | None, density: LogDensity) -> Mapping[str, Any] | None:
    if isinstance(start, Inferred):
        return {name: start[name].mean for name in density.names if name in start}
    return start


def _drawn(density: LogDensity, binding: Binding, first: Vector, key: np.ndarray, number: int) -> list[Vector]:
    """Starts drawn from the prior, or about the first."""
    if not number:
        return []
    keys = jax.random.split(jax.random.wrap_key_data(jnp.asarray(key)), number)
    try:
        path = Path(density.model, binding, {})
        words = jax.random.key_data(keys)
        drawn = density.function("map starts", (number,), jax.vmap(_of_prior(path), (0, None)))(words, path.data)
    except UnsupportedError:
        return [first + np.asarray(jax.random.uniform(one, first.shape, minval=-REACH, maxval=REACH)) for one in keys]
    values = [{name: np.asarray(drawn[name][i], float) for name in density.names} for i in range(number)]
    return [np.asarray(density.unconstrain(each)) for each in values]


def _of_prior(path: Path) -> Call:
    """A function of the words of a key and of data: a draw of all unknowns."""

    def drawn(words: Array, data: Mapping[str, Any]) -> Mapping[str, Array]:
        return path.drawn(jax.random.wrap_key_data(jnp.asarray(words)), data)

    return drawn


def _told(best: Judged, ends: Sequence[Judged]) -> str:
    """How the climbs ended."""
    names = ", ".join(f"'{name}'" for name in best.names)
    said = {
        INSIDE: "A maximum",
        EDGE: f"A maximum with elements of {names} at the edge of their domain",
        FLAT: f"The density is the same along a line or more of {names}: the maximum is not one point, and this is one",
    }.get(best.kind, f"The climb did not come to a maximum; it was still rising with {names}: give start= or restarts=")
    lost = [end for end in ends if end.endless]
    level = SAME * max(1.0, abs(best.height))
    met = sum(not end.endless and abs(end.height - best.height) <= level for end in ends)
    where = f", met by {met} of {len(ends)} starts" if len(ends) > 1 else ""
    more = f" {len(lost)} rose without end: {_no_maximum(lost[0])}" if lost else ""
    return f"{said}{where}.{more}"


def _no_maximum(end: Judged) -> str:
    names = ", ".join(f"'{name}'" for name in end.names)
    if end.kind == FAR:
        return (
            f"The density has no maximum: it rises to its limit as {names} grows without end (data that classes "
            "separate perfectly do so). Give it a prior that keeps it finite."
        )
    return (
        f"The density is not bounded: it rises without end as {names} comes to the edge of its domain or grows (a "
        "scale that shrinks to zero about one point does so). Such a maximum means nothing: give it a prior with no "
        "mass there, such as cv.inverse_gamma or cv.gamma(shape=2, ...) of a scale, integrate over it (cv.infer), or "
        "take jacobian=True, the maximum over logarithms."
    )


def _brief(value: np.ndarray) -> str:
    shown = ", ".join(f"{number:.4g}" for number in np.ravel(value)[:SHOWN])
    return shown + (", ..." if np.size(value) > SHOWN else "")
