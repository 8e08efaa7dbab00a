"""Marginals: what `posterior["v"]` is."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from functools import cached_property
from types import EllipsisType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from ...compiler.element_names import Label, label_of
from ...factors.arrays import Key, Numeric
from ...factors.calls import methods_checked
from ...factors.errors import DataError, UnsupportedError
from ...factors.families import Family
from ...factors.switches import double_precision
from ..distributions.cases import title
from ..support import asked_families as asked
from ..support.asked_arguments import key_words, levels, numbers, shape_of_draws
from ..support.concrete import as_numpy

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike

    from .of_distribution import Statement

Index: TypeAlias = int | slice | np.ndarray | list[int] | EllipsisType | None  # what NumPy takes for one axis


class Axis(NamedTuple):
    """An axis of a mean: its plate, or the classes of a category, and the names of its places where it has some."""

    name: str
    labels: tuple[Label, ...] | None = None
    is_class: bool = False

    def label(self, place: int) -> Label:
        """What an element is called."""
        return place if self.labels is None else self.labels[place]

    def places(self, index: Any) -> Any:
        """An index of places, of one of names: of a name, or of a list or array of them; all else as it is."""
        if isinstance(index, np.ndarray) and index.dtype.kind in "UO":
            index = index.tolist()
        if isinstance(index, list) and any(isinstance(label, str) for label in index):
            return [self.place(label) for label in index]
        return self.place(index) if isinstance(index, str) else index

    def place(self, label: object) -> int:
        """Where an element is; DataError for what is no name."""
        if isinstance(label, (list, np.ndarray)):
            raise DataError(
                f"One name of {self.name!r} is asked for; found {label!r}. posterior[variable][names] has the means of "
                "several."
            )
        known = label_of(label)
        if self.labels is None:
            if isinstance(label, (int, np.integer)) and not isinstance(label, bool):
                return int(label)
            raise DataError(f"Axis {self.name!r} has no names, so {label!r} is none of them. Give a place, from 0.")
        if known not in self.labels:
            near = difflib.get_close_matches(str(known), map(str, self.labels), n=1)
            told = f"Is it {near[0]!r}?" if near else f"There are {', '.join(map(repr, self.labels[:5]))}."
            raise DataError(f"{label!r} is no name of {self.name!r}. {told}")
        return self.labels.index(known)


@methods_checked("marginal")
class Marginal:
    """The distribution of one variable, NumPy-shaped by its plates and then the axes of one value.

    As an array it is its mean (the probabilities of a discrete variable). `family` is what inference found, `name` that
    of the variable, and `note` says what stands between this distribution and the exact marginal, "" for nothing. Where
    the family has no more than the mean and the variance of the distribution, `shape` makes that distribution from it,
    or None, when asked.
    """

    def __init__(
        self, family: Family, name: str = "", note: str = "", shape: Callable[[Family], Family | None] | None = None
    ) -> None:
        with double_precision():
            self.family = as_numpy(family)
        self.name = name
        self.note = note  # what stands between this distribution and the exact marginal, for its repr
        self._shape = shape
        self.axes: tuple[Axis, ...] = ()

    def along(self, axes: tuple[Axis, ...]) -> Marginal:
        """The same marginal, told what its axes are."""
        self.axes = axes
        return self

    def sel(self, **labels: Label) -> Marginal:
        """The marginal of some elements, by the names of their plates: `posterior["a"].sel(city="York")`.

        `labels` has for a plate the name of an element, or its place where it has no names. Returns a marginal over the
        other plates. Raises DataError for a plate that it does not have, and for no name of one.
        """
        from ..distributions.selected import selected  # few ask

        plates = [axis.name for axis in self.axes if not axis.is_class]
        for name in labels:
            if name not in plates:
                raise DataError(f"sel(): {self.name!r} has no plate {name!r}; it has {', '.join(plates) or 'none'}.")
        places = tuple(axis.place(labels[axis.name]) if axis.name in labels else None for axis in self.axes)
        places = places[: len(plates)]
        for axis, place, size in zip(self.axes, places, self.shape, strict=False):
            if place is not None and not 0 <= place < size:
                raise DataError(f"sel({axis.name}={place}): {axis.name!r} has {size} elements, from 0 to {size - 1}.")
        rest = tuple(axis for axis in self.axes if axis.is_class or axis.name not in labels)
        return Marginal(selected(self.distribution, places), self.name, self.note).along(rest)

    @property
    def has_names(self) -> bool:
        """Whether its elements have names."""
        return any(axis.labels is not None for axis in self.axes)

    @property
    def elements(self) -> list[str]:
        """What each number of the mean is called: its names, or its places, with commas between them."""
        axes = [*self.axes, *[Axis("")] * self.mean.ndim][: self.mean.ndim]
        return [
            ", ".join(str(axis.label(i)) for axis, i in zip(axes, index, strict=True))
            for index in np.ndindex(*self.shape)
        ]

    @property
    def has_shape(self) -> bool:
        """Whether its distribution may be more than its family."""
        return self._shape is not None

    @cached_property
    def distribution(self) -> Family:
        """What quantiles, densities and draws are of: the family, or what it is the projection of."""
        found = None if self._shape is None else self._shape(self.family)
        return self.family if found is None else found

    @property
    def mean(self) -> np.ndarray:
        """E x; P(True) of a boolean, the probability vector of a category."""
        return self._array(lambda: asked.mean(self.family))

    @property
    def variance(self) -> np.ndarray:
        """Var x, element by element."""
        return self._array(lambda: asked.variance(self.family))

    @property
    def sd(self) -> np.ndarray:
        """Standard deviation, element by element."""
        return np.sqrt(self.variance)

    @property
    def std(self) -> np.ndarray:
        """`sd`, as NumPy calls it."""
        return self.sd

    @property
    def var(self) -> np.ndarray:
        """`variance`, as NumPy calls it."""
        return self.variance

    @property
    def median(self) -> np.ndarray:
        """The quantile of one half, element by element; UnsupportedError as `quantile`."""
        return self.quantile(0.5)

    @property
    def mode(self) -> np.ndarray:
        """The value of the highest density, element by element; of categories the likeliest class, by its number.

        In closed form where there is one, else looked for along the quantiles; of weighted draws by their smoothed
        density. NaN for Dirichlet and Wishart distributions without one. Raises UnsupportedError where
        values have neither an order nor a closed form.
        """
        from .of_distribution import mode  # few ask

        return self._array(lambda: mode(self.distribution))

    @property
    def probability(self) -> np.ndarray:
        """P(x is true) of a boolean, the probabilities of a category, and P(x is not zero) of a spike and slab.

        Raises UnsupportedError for any other marginal.
        """
        found = self._array(lambda: getattr(self.family, "probability", np.nan))
        if not hasattr(self.family, "probability") or found.shape != self.mean.shape:
            raise UnsupportedError(
                f"{self.name!r} has a {title(self.family)} marginal, which tells of no probability. Those of "
                "booleans, categories and spike-and-slab variables do."
            )
        return found

    @property
    def covariance(self) -> np.ndarray:
        """The covariance matrix of a vector, shaped plates + (D, D).

        Raises UnsupportedError for a marginal of anything else.
        """
        if not hasattr(self.family, "covariance"):
            raise UnsupportedError(
                f"{self.name!r} has a {title(self.family)} marginal, whose elements are told one by one. Those of "
                "vectors have a covariance; `variance` is there for every marginal."
            )
        return self._array(lambda: asked.covariance(self.family))

    @property
    def parameters(self) -> dict[str, np.ndarray]:
        """The family's own parameters by name, such as shape and rate."""
        with double_precision():
            return {name: np.asarray(value) for name, value in asked.parameters(self.distribution).items()}

    def quantile(self, q: ArrayLike) -> np.ndarray:
        """The smallest value x with P(X <= x) >= q, element by element.

        `q` is a probability in [0, 1], or an array of them. Returns the axes of `q` + plates + event. Raises DataError
        for what is no probability, UnsupportedError where values have no order or no distribution function is known.
        """
        return np.asarray(self.distribution.quantile(levels(q, "quantile()")))

    def interval(self, probability: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """The central interval of the given `probability`, between the quantiles (1 - probability) / 2 and 1 less that.

        Returns its lower and its upper end, each shaped as the mean. Raises DataError unless `probability` is one
        number strictly between 0 and 1, and UnsupportedError as `quantile`.
        """
        tail = 0.5 * (1.0 - _mass(probability, "interval()"))
        return self.quantile(tail), self.quantile(1.0 - tail)

    def hdi(self, probability: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """The narrowest interval of the given `probability`: of one hill that of the highest density.

        Returns its lower and its upper end, each shaped as the mean. Raises as `interval`.
        """
        from .of_distribution import narrowest

        return narrowest(self.distribution, _mass(probability, "hdi()"))

    def prob(self, statement: Statement) -> np.ndarray:
        """P(statement(X)), element by element: `marginal.prob(lambda v: v > 0)`.

        `statement` takes an array of values and says of each whether it holds; classes are given by their numbers.
        Where values have an order the probability is exact, but for pieces between two of two thousand quantiles;
        vectors and simplexes are drawn, 20,000 times. Returns probabilities shaped as the mean, of vectors as the
        statement is. Raises DataError for what is no such function.
        """
        from .of_distribution import chance

        return self._array(lambda: chance(self.distribution, statement))

    def sample(self, key: Key | int = 0, shape: tuple[int, ...] = ()) -> np.ndarray:
        """Independent draws x ~ q, shaped `shape` + plates + event; classes and booleans by their numbers.

        `key` is a random key (`jax.random.key(0)`) or an integer seed: the same key gives the same draws. `shape` says
        how many along each axis, () for one. Raises ModelError for a key or a shape that is none.
        """
        words, sizes = key_words(key), shape_of_draws(shape)
        return self._array(lambda: asked.sample(sizes)(self.distribution, words))

    def log_density(self, x: ArrayLike) -> np.ndarray:
        """log q(x), element by element over the plates.

        `x` is shaped plates + event, more axes before them allowed; a class is given by its number. Returns the leading
        axes + plates. Raises DataError for what is no array of numbers, UnsupportedError for an observed variable,
        whose distribution is a point.
        """
        if not hasattr(self.distribution, "log_density"):
            raise UnsupportedError(f"{self.name!r} is observed: a point has no density. Compare with its `.mean`.")
        values = np.array(numbers(x, "log_density()"))
        return self._array(lambda: asked.log_density(self.distribution, values))

    @staticmethod
    def _array(function: Callable[[], Numeric]) -> np.ndarray:
        with double_precision():
            return np.asarray(function())

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the mean."""
        return self.mean.shape

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        mean = self.mean
        return mean if dtype is None else mean.astype(dtype)

    def __len__(self) -> int:
        return len(self.mean)

    def __getitem__(self, index: Index | str | tuple[Index | str, ...]) -> np.ndarray:
        """An entry of the mean, by places or by names, or a list of them; IndexError for what is no place of it."""
        keys = index if isinstance(index, tuple) else (index,)
        axes = [*self.axes, *[Axis("")] * len(keys)]
        places = tuple(axis.places(key) for axis, key in zip(axes, keys, strict=False))
        try:
            return self.mean[places if isinstance(index, tuple) else places[0]]
        except (IndexError, TypeError) as problem:
            told = f"{self.name!r} has the shape {self.shape}, and {index!r} is no place of it"
            raise IndexError(f"{told} ({problem}). Give places from 0, slices, or names.") from None

    def _repr_html_(self) -> str:
        """Its picture and its numbers, in a notebook."""
        from ...compiler.portable import called  # what draws reads marginals

        return called("engine.html.marginals", "html_of_marginal", self)

    def __repr__(self) -> str:
        shown = title(self.distribution)
        note = f" ({self.note})" if self.note else ""
        if self.mean.size > 12:
            return f"<{shown} marginal {self.name!r} of shape {self.shape}>{note}"
        parts = ", ".join(f"{name}={np.array2string(value, precision=5)}" for name, value in self.parameters.items())
        return f"{shown}({parts}){note}"


def _mass(probability: object, call: str) -> float:
    """One probability strictly between 0 and 1; DataError for anything else."""
    found = levels(probability, call)
    if found.ndim != 0 or not 0 < found < 1:
        raise DataError(f"{call} takes a probability between 0 and 1; found {probability!r}.")
    return float(found)
