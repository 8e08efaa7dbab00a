"""The joint log density of a model given data, as a function of its latent variables: what samplers and checks need."""

from __future__ import annotations

import functools
from collections.abc import Collection, Hashable, Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import PyTree

from ...compiler.data.bind import Binding
from ...compiler.language.model import Model
from ...compiler.language.nodes import Expr, Random, inside, parents
from ...factors.arrays import Array, Key
from ...factors.calls import call_checked, methods_checked
from ...factors.errors import DataError, UnsupportedError
from ...factors.switches import double_precision
from ..answers.inferred import Inferred
from ..data.rules_of_arguments import bind_checked
from ..support.asked_arguments import key_words, list_of_names, the_model
from ..support.cache import Recent
from ..support.compiled import Call, compiled
from ..values.plated import spread
from .contents import contents_of
from .coordinates import coordinates_of
from .joint_terms import joint_terms
from .terms import is_process

FUNCTIONS = 16  # that a density keeps
TERMS = 200  # draws at once that the terms of a variable are taken at


@call_checked
def log_density(
    model: Model, data: Mapping[str, PyTree], sizes: Mapping[str, int] | None = None, integrate: Sequence[str] = ()
) -> LogDensity:
    """log p(latent variables, data) of `model`: a function of the values of the latent variables by name.

    `data` and `sizes` are those of `infer`. The latent variables are those that an observation or a constraint depends
    on. Discrete ones are summed out, chains and trees by messages, elements that a factor joins jointly; Gaussian noise
    that only a comparison sees (`m.constrain(margin > 0)`) is integrated out, and so are chains and trees of numbers
    that `integrate` names, whose steps and whatever sees them are linear and Gaussian. Returns a `LogDensity`, which
    also takes unconstrained coordinates. Raises DataError for data that do not fit, UnsupportedError, with the reason,
    for a model without a joint density: an observed sum or product, a random count, discrete elements whose joint table
    is too large.
    """
    names = list_of_names(integrate, "integrate=")
    return LogDensity(the_model(model), bind_checked(model, data, sizes), integrate=names)


def density_of(posterior: Inferred) -> LogDensity:
    """The joint log density that a posterior approximates, up to its constant."""
    if given := posterior.graph.given:
        raise UnsupportedError(
            f"'{min(given)}' has the belief of another posterior as its prior (prior=), which is no part of the model: "
            "there is no joint density to compare with. Check a run on all data at once."
        )
    return LogDensity(posterior.model, posterior.binding, ordered=False)  # beliefs are not in that order


@methods_checked("log_density")
class LogDensity:
    """The joint log density of the latent variables of a model, given its data.

    Called with `values`, a dictionary of arrays by name, it gives log p(values, data). In unconstrained coordinates it
    is `unconstrained(z) = log p(constrain(z), data) + log |d constrain / dz|` for a vector z of `dimension` numbers.
    Both may be jitted and differentiated; use them inside `jax.enable_x64(True)` then. `shapes` maps each latent
    variable to the shape of its array, `summed` names the discrete variables that were summed out, `collapsed` the
    Gaussian noise and the chains of `integrate` that were integrated out, `hard` the constraints that make the density
    jump to zero, which no gradient tells. Constraints that put elements of one variable in order are no such, but
    `ordered`: every point of the unconstrained coordinates keeps that order, unless it is not asked for, or changes
    with data that are `moved`. `model` is whose density it is, `binding` the data, as checked. Without `sum_out` the
    discrete variables are among the values, with `everything` also what nothing observed depends on. The terms of
    variables in `flat` are left out, so that these have flat priors.
    Raises UnsupportedError for a model without a joint density.
    """

    def __init__(
        self,
        model: Model,
        binding: Binding,
        sum_out: bool = True,
        everything: bool = False,
        integrate: Sequence[str] = (),
        flat: Collection[str] = (),
        ordered: bool = True,
        moved: Collection[str] = (),
    ) -> None:
        self.model, self.binding, self.flat = model, binding, tuple(sorted(flat))
        self.contents = contents_of(model, binding, sum_out, everything, integrate)
        self.terms = joint_terms(self.contents, self.flat)
        self.coordinates = coordinates_of(self.contents, ordered, moved)
        self.names, self.summed = tuple(self.contents.variables), tuple(self.contents.states)
        self.discrete, self.collapsed = self.contents.discrete, self.contents.collapsed
        self.shapes = {name: self.contents.shape(variable) for name, variable in self.contents.variables.items()}
        compared, variables = self.contents.compared, self.contents.variables
        self.ordered = tuple(n for n, one in compared.items() if one.variable.name in self.coordinates.kept)
        soft = (*self.contents.comparisons, *self.ordered)
        events = {name: expr for name, (expr, _) in self.contents.events.items() if name not in soft}
        self.hard = tuple(name for name, expr in events.items() if _reads_continuous(expr, variables))

    @property
    def observed(self) -> frozenset[str]:
        """The random variables that the data give."""
        return frozenset(self.contents.data) & frozenset(self.model.randoms)

    @functools.cached_property
    def dimension(self) -> int:
        """The number of unconstrained coordinates."""
        return max((own.stop for own in self.slices.values()), default=0)

    @property
    def slices(self) -> dict[str, slice]:
        """Which unconstrained coordinates belong to which variable."""
        return self.coordinates.slices

    @functools.cached_property
    def joint_entries(self) -> int:
        """How many numbers are added up where chains, or elements that hang together, are summed out."""
        return self.terms.entries()

    # at numbers -------------------------------------------------------------------------------------------------------

    def __call__(self, values: Mapping[str, PyTree]) -> Array | float:
        """log p(values, data). `values` has one array for each name in `names`, of the shape in `shapes`."""
        return self._numbers("density of values", self.terms.density, self._checked(values))

    def unconstrained(self, z: PyTree) -> Array | float:
        """log p(constrain(z), data) + log |d constrain / dz|."""
        return self._numbers("density of coordinates", self.height, self._vector(z))

    def prior(self, z: PyTree) -> Array | float:
        """log p(constrain(z)) + log |d constrain / dz|: `unconstrained` without what the data and constraints tell.

        Nested sampling and sequential Monte Carlo take it apart from the likelihood, which is the difference. Raises
        UnsupportedError where a prior depends on discrete variables, which are summed out, or has entries given.
        """
        if self.ordered:
            raise UnsupportedError(
                f"'{self.ordered[0]}' puts elements in order, which the coordinates keep: in these the prior lacks "
                "what is out of order. cv.evidence finds the evidence of such a model."
            )
        for name, variable in self.contents.variables.items():
            read = {node.name for node in inside(parents(variable)) if isinstance(node, Random)}
            if (joined := read & set(self.summed)) or name in self.contents.holes:
                why = f"depends on '{min(joined)}', which is summed out" if joined else "has entries that the data give"
                raise UnsupportedError(
                    f"'{name}' {why}: the joint density does not fall into a prior and a likelihood. cv.evidence finds "
                    "the evidence of models with discrete variables."
                )

        def height(z: Array, data: Mapping[str, Array]) -> Array:
            return self.terms.prior(self.coordinates.values(z, data), data) + self.coordinates.log_jacobian(z, data)

        return self._numbers("prior of coordinates", height, self._vector(z))

    def constrain(self, z: PyTree) -> dict[str, Array | float]:
        """The values of the latent variables at the unconstrained vector z."""
        return self._numbers("values of coordinates", self.coordinates.values, self._vector(z))

    def unconstrain(self, values: Mapping[str, PyTree]) -> Array:
        """The unconstrained vector at which `constrain` gives these values."""
        return self._numbers("coordinates of values", self.coordinates.vector, self._checked(values))

    def initial(self, key: Key | int) -> np.ndarray:
        """A start for a sampler: an unconstrained vector drawn from a uniform distribution between -1 and 1.

        `key` is a random key or an integer seed. Returns `dimension` numbers.
        """
        with double_precision():
            key = jax.random.wrap_key_data(jnp.asarray(key_words(key)))
            return np.asarray(jax.random.uniform(key, (self.dimension,), minval=-1.0, maxval=1.0))

    def terms_of(self, name: str, values: Mapping[str, np.ndarray]) -> np.ndarray:
        """log p(element | others) of every element of the observed variable called `name`, at each of many `values`.

        They are the first axis. UnsupportedError for a Gaussian process, whose elements are drawn together.
        """
        node = self.model.randoms[name]
        if is_process(node):
            raise UnsupportedError(
                f"'{name}' is a Gaussian process, whose elements have no terms of their own. "
                "Observe each element with noise of its own, m.random('y', cv.gaussian(f, sd=...))."
            )

        def terms_at_draws(values: Mapping[str, Array], data: Mapping[str, Array]) -> Array:
            def one(at: Mapping[str, Array]) -> Array:
                by_element = self.terms.by_element(node, self.contents.scope(at, data))
                return spread(by_element, node.plates, self.contents.sizes)

            return jax.lax.map(one, values, batch_size=TERMS)

        with double_precision():
            call = self.function("terms", (name,), terms_at_draws)
            return np.asarray(call(jax.tree.map(np.asarray, dict(values)), self.contents.data))

    # at traced values, the data being arguments -----------------------------------------------------------------------

    def height(self, z: Array, data: Mapping[str, Array]) -> Array:
        """`unconstrained` at a traced vector `z`, where the `data` are an argument too."""
        return self.terms.density(self.coordinates.values(z, data), data) + self.coordinates.log_jacobian(z, data)

    def states_given(self, z: Array, data: Mapping[str, Array]) -> dict[str, Array]:
        """The probabilities of the states of each variable summed out, given the others at `z` and the `data`.

        They are the derivatives of the log density in what is added to the log probabilities of the states.
        """
        values = self.coordinates.values(z, data)
        return jax.grad(lambda tilts: self.terms.density(values, data, tilts))(self.no_tilts())

    def no_tilts(self) -> dict[str, Array]:
        """Zero for each state of each variable summed out, to add to the logs of their probabilities."""
        summed = self.contents.states.items()
        return {name: jnp.zeros(self.contents.states_shape(one.variable)) for name, one in summed}

    # calls ------------------------------------------------------------------------------------------------------------

    def _checked(self, values: Mapping[str, PyTree]) -> dict[str, Array]:
        lacks = [name for name in self.names if name not in values]
        extra = [name for name in values if name not in self.shapes]
        if lacks or extra:
            raise DataError(
                f"The log density takes values of {', '.join(self.names) or 'nothing'}; "
                + (f"{lacks[0]!r} is missing." if lacks else f"{extra[0]!r} is not among them.")
                + (f" Summed out: {', '.join(self.summed)}." if self.summed else "")
                + (f" Integrated out: {', '.join(self.collapsed)}." if self.collapsed else "")
            )
        arrays = {name: a if hasattr(a, "dtype") else np.asarray(a, float) for name, a in values.items()}
        for name, shape in self.shapes.items():
            if arrays[name].shape != shape:
                raise DataError(
                    f"The value of '{name}' must have shape {shape} (plates, then one value's axes); found "
                    f"{arrays[name].shape}."
                )
        return arrays

    def _vector(self, z: PyTree) -> Array:
        z = z if hasattr(z, "dtype") else np.asarray(z, float)
        if np.shape(z) != (self.dimension,):
            raise DataError(
                f"An unconstrained point of this model is a vector of {self.dimension} numbers; found shape "
                f"{np.shape(z)}."
            )
        return z

    def function(self, what: str, of: tuple[Hashable, ...], function: Call) -> Call:
        """`function`, one of nested arrays, made ready at most once: this density and `of` decide what it computes.

        Data are arguments of it, and part of its structure too: which discrete variables hang together depends on them.
        """
        own = self.contents
        given = own.sizes, own.given, own.holes, own.data
        structure = self.model, *given, self.collapsed, self.flat, tuple(sorted(self.coordinates.kept)), *of
        return self._functions.get((what, *of), lambda: compiled(what, structure, function))

    @functools.cached_property
    def _functions(self) -> Recent[Call]:
        return Recent(FUNCTIONS)

    def _numbers(self, what: str, own: Call, argument: PyTree) -> PyTree:
        """Traced values pass through; numbers are computed in double precision and come back as NumPy."""
        if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(argument)):
            return jax.jit(own)(argument, self.contents.data)
        with double_precision():
            argument = jax.tree.map(lambda a: np.asarray(a, float), argument)
            found = jax.tree.map(np.asarray, self.function(what, (), own)(argument, self.contents.data))
        return float(found) if isinstance(found, np.ndarray) and found.ndim == 0 else found

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name}{list(shape) if shape else ''}" for name, shape in self.shapes.items())
        out = [f"summed out: {', '.join(self.summed)}"] * bool(self.summed)
        out += [f"integrated out: {', '.join(self.collapsed)}"] * bool(self.collapsed)
        return "<" + "; ".join([f"Log density of {self.model.name!r} in {shapes or 'nothing'}", *out]) + ">"


def _reads_continuous(expr: Expr, variables: Mapping[str, Random]) -> bool:
    return any(isinstance(node, Random) and node.name in variables for node in inside([expr]))
