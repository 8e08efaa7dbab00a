"""Which move draws each variable: the most exact that its factors allow."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from ...compiler.language.nodes import Random, inside, parents
from ...factors.arrays import Key
from ...factors.errors import UnsupportedError
from ...factors.factor import Term
from ...factors.families.bijections import Bijection, interval, line
from ..blocks.discrete.networks import NEVER
from ..density.coordinates import ends_of
from ..density.sum_chains import chain_of
from ..density.terms import is_process, is_whole
from ..values.first_beliefs import family_of
from .conditionals import arrow, conjugate, discrete, gaussian, spikes
from .conditionals.counts import count_move
from .conditionals.elliptical import elliptical_move
from .conditionals.lanes import all_apart, lanes_of
from .conditionals.nuts import has_blackjax, nuts_move
from .conditionals.slices import slice_move
from .conditionals.smooth import moves_an_end
from .forward import draw_term
from .joint import Data, Joint, Values, set_in_order
from .move import Move, Stage, stateless

NUMBERS = ("real", "positive", "unit")
STRUCTURES = 2**30  # of a key, for the structures that a start has
STATES, AT_RANDOM = 20, 3  # of what is discrete, in which conditionals are tried, and random arrays of structures
DRAWN, SEARCHED = 20, 200  # starts, and sweeps of slices from the last of them
POSSIBLE = 1e-5 * NEVER  # a log density below has something impossible in it
NOT_WARMING = Stage(*(np.asarray(False) for _ in Stage._fields))


def moves_of(joint: Joint, starts: list[Values], key: Key) -> tuple[Move, ...]:
    """The moves of a sweep, auxiliary variables first; conditionals are tried at the values in `starts`.

    What is drawn with an auxiliary variable summed out comes before that is drawn anew: between its draw and the last
    move that is given it, nothing may change that it depends on and that does not know it.

    UnsupportedError where a variable has none.
    """
    summed = {name for one in joint.augmented.values() for name in one.summed} & set(joint.variables)
    if any(joint.variables[name].domain.is_discrete for name in summed):
        summed |= {name for name, v in joint.variables.items() if v.domain.is_discrete}  # as constraints may tie them
    early = {name: v for name, v in joint.variables.items() if name in summed}
    rest = {name: v for name, v in joint.variables.items() if name not in summed}
    moves = moves_among(joint.unaugmented(), early, starts, key) if early else ()
    auxiliary = (_auxiliary(joint, factor) for factor in joint.augmented)
    return (*moves, *auxiliary, *moves_among(joint, rest, starts, key))


def moves_among(joint: Joint, chosen: Mapping[str, Random], starts: list[Values], key: Key) -> tuple[Move, ...]:
    """The moves of some variables given all others, discrete ones first."""
    moves = _of_discrete(joint, tuple(name for name, variable in chosen.items() if variable.domain.is_discrete))
    moves += [spikes.spike_move(joint, name, starts, key) for name, v in chosen.items() if v.domain.is_sparse]
    moves += [_filled(joint, count_move(joint, name)) for name, v in chosen.items() if is_whole(v)]
    left = {n: v for n, v in chosen.items() if not (v.domain.is_discrete or v.domain.is_sparse or is_whole(v))}
    for move in [*_of_gaussians(joint, left, starts, key), *_conjugates(joint, left, starts)]:
        moves.append(_filled(joint, move))
        left = {name: variable for name, variable in left.items() if name not in move.names}
    return (*moves, *_of_the_rest(joint, left))


def _auxiliary(joint: Joint, factor: str) -> Move:
    own = joint.augmented[factor]
    return stateless(
        (own.name,),
        f"{own.kind.name}, for each instance of '{factor}'",
        lambda key, values, data: {own.name: own.draw(key, joint.scope(values, data))},
    )


def _filled(joint: Joint, move: Move) -> Move:
    """The move, with the entries that were given put back."""
    holes = {name: joint.contents.holes[name] for name in move.names if name in joint.contents.holes}
    if not holes:
        return move

    def step(key, values, state, data, stage):
        moved, state = move.step(key, values, state, data, stage)
        for name, places in holes.items():
            count = math.prod(values[name].shape[: len(joint.variables[name].plates)])
            given, drawn = (jnp.asarray(array).reshape((count, -1)) for array in (values[name], moved[name]))
            moved = {**moved, name: given.at[places].set(drawn[places]).reshape(values[name].shape)}
        return moved, state

    return move._replace(step=step)


# discrete -------------------------------------------------------------------------------------------------------------


def _of_discrete(joint: Joint, names: tuple[str, ...]) -> list[Move]:
    if not names:
        return []
    partly = [name for name in names if name in joint.contents.holes]
    if not partly and (move := discrete.together(joint, names)) is not None:
        return [move]
    moves, coupled, tied = [], [], {name for _, several in _ties(joint, names) for name in several if len(several) > 1}
    for name in names:
        if name in tied or (own := _one_discrete(joint, name)) is None:
            coupled.append(name)
        else:
            moves.append(_filled(joint, own))
    if not coupled:
        return moves
    if (move := discrete.network(joint, names)) is not None:
        return [move]
    if (move := discrete.network(joint, tuple(coupled))) is not None:
        return [*moves, move]
    if joined := [name for name in partly if name in coupled]:
        raise UnsupportedError(
            f"'{joined[0]}' is discrete, its elements depend on each other, and some of them are given: such a "
            "variable has no draws here. cv.infer takes it, and cv.log_density sums it out."
        )
    if (move := discrete.together(joint, tuple(coupled))) is not None:
        return [*moves, move]
    _check_reachable(joint, names, coupled)
    return [*moves, *(discrete.one_after_other(joint, name) for name in coupled)]


def _one_discrete(joint: Joint, name: str) -> Move | None:
    """The move of a variable whose elements are independent given all others, or a chain or a tree of such."""
    if (gathers := joint.gathers(name)) is not None:
        return discrete.by_element(joint, name, gathers)
    outside = joint.gathers_outside(name)
    if chain_of(joint.variables[name]) is None or outside is None:
        return None
    return discrete.along_chain(joint, name, outside)


def _ties(joint: Joint, names: Iterable[str]) -> list[tuple[str, list[str]]]:
    """The constraints and observed expressions, each with those of the variables that it reads."""
    events = [event for event in joint.contents.events if event in joint.factors]
    return [(event, [name for name in names if event in joint.touching([name])]) for event in events]


def _check_reachable(joint: Joint, names: Iterable[str], coupled: Collection[str]) -> None:
    """One element after the other never leaves where a constraint ties several of them."""
    for event, tied in _ties(joint, names):
        if len(tied) > 1 or set(tied) & set(coupled):
            raise UnsupportedError(
                f"'{event}' ties the discrete variables {', '.join(tied)} to each other, and together with the others "
                f"they have more than {discrete.ALL_AT_ONCE:,} states: drawn one after the other they would not reach "
                "all of these. cv.infer enumerates such parts."
            )


# continuous -----------------------------------------------------------------------------------------------------------


def _of_gaussians(joint: Joint, left: Mapping[str, Random], starts: list[Values], key: Key) -> list[Move]:
    """Real variables and vectors: jointly where a matrix of all is small enough, else element by element."""
    alone = [n for n, v in left.items() if v.domain.is_gaussian and gaussian.is_gaussian(joint, (n,), starts, key)]
    wide = _rows(joint, alone, starts, key)
    core = _core(joint, alone, wide, starts, key)
    if wide and not core:
        wide, core = (), _core(joint, alone, (), starts, key)
    joined = (*core, *wide)
    if core and wide:
        moves = [arrow.with_core(joint, core, wide, starts[0])]
    elif len(core) > 1:
        moves = [gaussian.jointly(joint, core, starts[0])]
    else:
        moves, joined = [], ()
    for name in set_in_order(alone, joined):
        moves += _of_one_gaussian(joint, name, starts[0])
    return moves


def _core(joint: Joint, alone: list[str], wide: tuple[str, ...], starts: list[Values], key: Key) -> tuple[str, ...]:
    """Variables that are drawn together, and with those whose elements are many: small ones first."""
    core, size = [], 0
    for name in sorted(set_in_order(alone, wide), key=lambda name: gaussian.size_of(joint, name)):
        own = gaussian.size_of(joint, name)
        fits = size + own <= gaussian.DENSE and name not in joint.contents.holes
        fits = fits and (not wide or arrow.affordable(joint, size + own, wide))
        if fits and (not (*wide, *core) or gaussian.is_gaussian(joint, (*wide, *core, name), starts, key)):
            core.append(name)
            size += own
    return tuple(core)


def _rows(joint: Joint, alone: list[str], starts: list[Values], key: Key) -> tuple[str, ...]:
    """Variables whose elements are many, and independent given the others: with these they are drawn as an arrow."""
    whole = tuple(name for name in alone if name not in joint.contents.holes)
    wide = arrow.rows_apart(joint, whole)
    if len(wide) > 1 and not gaussian.is_gaussian(joint, wide, starts, key):
        return wide[:1]
    return wide


def _of_one_gaussian(joint: Joint, name: str, values: Values) -> list[Move]:
    """All elements of a variable, those that do not meet in small matrices; none where there are too many."""
    lanes, size, whole = lanes_of(joint, name), gaussian.size_of(joint, name), name not in joint.contents.holes
    if joint.gathers(name) is not None:
        return [gaussian.by_lane(joint, name, all_apart(joint, name), values)]
    if lanes.plates and whole and size <= gaussian.DENSE * lanes.count:
        return [gaussian.by_lane(joint, name, lanes, values)]
    if size <= gaussian.DENSE and whole:
        return [gaussian.jointly(joint, (name,), values)]
    if _is_chain(joint, name) and joint.gathers_outside(name) is not None and whole:
        return [gaussian.along_chain(joint, name)]
    return []


def _is_chain(joint: Joint, name: str) -> bool:
    chain = chain_of(joint.variables[name])
    return chain is not None and chain.parent is None


def _conjugates(joint: Joint, left: Mapping[str, Random], starts: list[Values]) -> list[Move]:
    moves = []
    for name in left:
        gathers = joint.gathers(name)
        if gathers is not None and (fit := conjugate.fitting(joint, name, starts)) is not None:
            moves.append(conjugate.conjugate(joint, name, gathers, fit))
    return moves


def _of_the_rest(joint: Joint, left: Mapping[str, Random]) -> list[Move]:
    """Slices where all are numbers with independent elements that do not meet; else NUTS, but where constraints cut."""
    slices: dict[str, Any] = {}
    for name, variable in left.items():
        gathers, one = joint.gathers(name), _coordinate(joint, variable)
        if gathers is not None and one is not None:
            slices[name] = gathers, one
    all_slices = slices
    if has_blackjax() and _share_a_factor(joint, slices):
        slices = {}  # one after the other they crawl where they are correlated
    cut = {name for name in left if set(joint.touching([name])) & set(joint.density.hard) or moves_an_end(joint, name)}
    if len(slices) < len(left):
        slices = {name: found for name, found in all_slices.items() if name in cut or _random_ends(joint, left[name])}
    moves = [slice_move(joint, name, *found) for name, found in slices.items()]
    functions = [n for n, v in left.items() if is_process(v) and n not in joint.contents.holes]
    moves += [elliptical_move(joint, name) for name in functions]
    names = tuple(name for name in left if name not in slices and name not in functions)
    if names:
        bijections = {name: _bijection(joint, left[name]) for name in names}
        moves.append(nuts_move(joint, names, bijections))
    return [_filled(joint, move) for move in moves]


def _bijection(joint: Joint, variable: Random) -> Bijection:
    """The coordinates of all elements: as they are where a structure that moves decides the ends of their support."""
    if _ends_at_a_structure(joint, variable):
        return line().over(joint.contents.shape(variable))
    return joint.density.coordinates.bijection(variable, joint.contents.data)


def _share_a_factor(joint: Joint, names: Iterable[str]) -> bool:
    """Whether two of these variables meet in a factor."""
    met = [factor for name in names for factor in joint.touching([name])]
    return len(set(met)) < len(met)


def _random_ends(joint: Joint, variable: Random) -> bool:
    """Whether a support ends where something random says, or a structure that moves."""
    if _ends_at_a_structure(joint, variable):
        return True
    try:
        joint.density.coordinates.bijection(variable, joint.contents.data)
    except UnsupportedError:
        return True
    return False


def _ends_at_a_structure(joint: Joint, variable: Random) -> bool:
    """Whether the support of a term with ends reads an array that moves change."""
    term, moved = variable.term, {name for one in joint.structures for name in one.names}
    if not moved or not isinstance(term, Term) or term.factor.support is None:
        return False
    return any(getattr(node, "name", None) in moved for node in inside(parents(variable)))


def _coordinate(joint: Joint, variable: Random) -> Bijection | None:
    """The unconstrained coordinate of an element; None where it is no number, or elements differ in their ends."""
    if variable.domain.kind not in NUMBERS:
        return None
    if _ends_at_a_structure(joint, variable):
        return line()
    if isinstance(variable.term, Term) and (support := variable.term.factor.support) is not None:
        try:
            low, high = ends_of(joint.contents, variable, variable.term, support)
        except UnsupportedError:
            return line()  # outside of random ends the density is zero
        alike = all(a == low[0] and b == high[0] for a, b in zip(low, high, strict=True))
        return interval(float(low[0]), float(high[0])) if alike else None
    return family_of(variable).bijection(None)


# starts ---------------------------------------------------------------------------------------------------------------


def start(joint: Joint, key: Key, given: Values | None = None) -> Values:
    """Values of all variables: unconstrained coordinates between -1 and 1, states and auxiliary variables at random.

    Those that are `given` keep their values.
    """
    values: Values = dict(given or {})
    for i, (name, variable) in enumerate(joint.variables.items()):
        own = jax.random.fold_in(key, i)
        shape = joint.contents.shape(variable)
        if name in values:
            continue
        if variable.domain.is_discrete:
            state = jax.random.randint(own, shape, 0, discrete.state_count(joint, variable))
            values[name] = with_given(joint, name, discrete.as_values(variable, state))
        elif is_whole(variable):  # what it depends on has values already
            values[name] = jnp.asarray(draw_term(variable.term, variable, joint.scope(values, joint.data), own), float)
        else:
            values[name] = _continuous_start(joint, variable, own, shape)
    for i, structured in enumerate(joint.structures):
        values |= structured.start(jax.random.fold_in(jax.random.fold_in(key, STRUCTURES), i))
    for i, augmented in enumerate(joint.augmented.values()):
        own = jax.random.fold_in(key, len(joint.variables) + i)
        values[augmented.name] = joint.auxiliary_draw(augmented, own, values)
    return values


def in_each_state(joint: Joint, values: Values, key: Key) -> list[Values]:
    """The values with all that is discrete in its first state, in its second, and so on: no gate stays unseen.

    Structures too, and these at random; what has no finite density there is left out.
    """
    states = {n: discrete.state_count(joint, v) for n, v in joint.variables.items() if v.domain.is_discrete}
    places = {place.name: place for one in joint.structures for place in one.places if place.states is not None}
    most = {name: place.states or 0 for name, place in places.items()}
    found = []
    for number in range(min(max((*states.values(), *most.values()), default=0), STATES)):
        moved = {}
        for name, count in states.items():
            state = jnp.full(jnp.shape(values[name]), min(number, count - 1))
            moved[name] = with_given(joint, name, discrete.as_values(joint.variables[name], state))
        for name, count in most.items():
            moved[name] = jnp.full_like(values[name], min(number, count - 1))
        found.append({**values, **moved})
    for i in range(AT_RANDOM if places else 0):
        own = jax.random.fold_in(key, i)
        moved = {n: jax.random.randint(own, places[n].shape, 0, c).astype(values[n].dtype) for n, c in most.items()}
        found.append({**values, **moved})
    if not places:
        return found
    factors = tuple(joint.factors)
    return [one for one in found if bool(jnp.isfinite(joint.total(factors, one, joint.data)))]


def with_given(joint: Joint, name: str, drawn: Any) -> Any:
    """An array of a variable, with those entries that the data give."""
    if name not in joint.contents.holes:
        return drawn
    given = given_entries(joint, name)
    told = np.nan_to_num(np.asarray(joint.contents.data[name], float)).astype(drawn.dtype)
    return jnp.where(given.reshape(given.shape + (1,) * (drawn.ndim - given.ndim)), told, drawn)


def given_entries(joint: Joint, name: str) -> np.ndarray:
    """Over the plates of a variable that is given in part, which of its entries the data give."""
    shape = tuple(joint.sizes[plate.name] for plate in joint.variables[name].plates)
    given = np.ones(math.prod(shape), bool)
    given[joint.contents.holes[name]] = False
    return given.reshape(shape)


def _continuous_start(joint: Joint, variable: Random, key: Key, shape: tuple[int, ...]) -> Any:
    if variable.domain.is_sparse:
        keys = jax.random.split(key)
        return jax.random.bernoulli(keys[0], 0.5, shape) * jax.random.normal(keys[1], shape)
    if _random_ends(joint, variable):
        one = family_of(variable).bijection(None)
        if one is None:
            raise UnsupportedError(
                f"'{variable.name}' is {variable.domain}, which has no unconstrained coordinates and no draws here. "
                "Write it as a product of a boolean and a number."
            )
        found = one.over(shape)
    else:
        found = joint.density.coordinates.of_start(variable)
    return found.forward(jax.random.uniform(key, (found.size,), minval=-1.0, maxval=1.0)).reshape(shape)


Drawn: TypeAlias = Callable[[Key], Values]  # some of the values that a chain begins with


def starter(joint: Joint, moves: Sequence[Move]) -> Callable[..., Values]:
    """What finds a start of positive density from a key: drawn, else by the moves; UnsupportedError where they fail.

    A second argument draws those values that are not to begin anywhere.
    """
    factors = tuple(joint.factors)
    searching = [move for move in moves if move.searches]
    total = jax.jit(lambda values, data: joint.total(factors, values, data))

    @jax.jit
    def search(values: Values, key: Key, data: Data) -> Values:
        for i, move in enumerate(searching):
            values, _ = move.step(jax.random.fold_in(key, i), values, move.init(values, data), data, NOT_WARMING)
        return values

    def is_possible(values: Values) -> bool:
        return bool(total(values, joint.arrays) > POSSIBLE)

    def find(key: Key, drawn: Drawn | None = None) -> Values:
        values: Values = {}
        for i in range(DRAWN):
            own = jax.random.fold_in(key, i)
            values = start(joint, own, None if drawn is None else drawn(own))
            if is_possible(values):
                return values
        for i in range(SEARCHED if searching else 0):
            values = search(values, jax.random.fold_in(key, DRAWN + i), joint.arrays)
            if is_possible(values):
                return values
        raise UnsupportedError(
            "No start of positive density was found: constraints or bounds leave little room. Loosen them, or give the "
            "compared quantities noise of their own."
        )

    return find
