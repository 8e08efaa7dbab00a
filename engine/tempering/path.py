"""The path from a reference to the posterior: the joint density at an inverse temperature between zero and one.

At inverse temperature b the log density is b log p(x, data) + (1 - b) log r(x). The reference r is a product of
normalised densities, one for each latent variable: a belief about it, or its own conditional density given its parents.
With conditional densities alone the path tempers the likelihood given all latent variables and leaves the prior as it
is. Factors keep their form, so that what is conjugate stays so. Source: paquet2007thesis.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping

import jax
import jax.numpy as jnp
import numpy as np

from ...compiler.data.bind import Binding
from ...compiler.language.model import Model
from ...compiler.language.nodes import Random
from ...factors.arrays import Array, Key
from ...factors.errors import UnsupportedError
from ...factors.factor import all_terms
from ...factors.families import ExponentialFamily
from ..density.sum_out import eliminate
from ..density.tables import InstanceDensity, Read
from ..sampling.choose import POSSIBLE, given_entries, with_given
from ..sampling.collapse import SUMMED, without_states
from ..sampling.forward import draw_term
from ..sampling.joint import Data, Joint, Values
from ..values.evaluate import value
from ..values.plated import Placed, mapped
from ..values.scope import Scope

INVERSE = "the inverse temperature of the path"  # its name among the data
TRIED_AT = 0.5  # where conditionals are tried


class Path(Joint):
    """The tempered joint density; the inverse temperature is one of its data.

    `beliefs` are the references of the variables that have one, over all of their plates. Of a variable that is given
    in part, `given` tells where: these entries are outcomes, the others have their prior as reference.
    """

    def __init__(self, model: Model, binding: Binding, beliefs: Mapping[str, ExponentialFamily]) -> None:
        super().__init__(model, binding)
        self.augmented = {}  # auxiliary variables belong to factors that are not tempered
        self.data = {**self.data, INVERSE: np.asarray(TRIED_AT)}
        self.varying = (INVERSE,)
        self.given = {name: given_entries(self, name) for name in self.density.contents.holes if name in self.variables}
        latent = {name for name in self.variables if name not in self.given}
        self.beliefs = {name: belief for name, belief in beliefs.items() if name in latent}
        self.moved = [name for name in self.factors if name in self.beliefs or name not in latent]
        _check_reference(self)

    def table(self, factor: str, scope: Scope) -> Placed:
        """The log density of a factor at the inverse temperature, by instance."""
        own = super().table(factor, scope)
        if factor not in self.moved:
            return own
        inverse = jnp.asarray(scope.data[INVERSE])
        if factor in self.given:
            return mapped(lambda p, known: jnp.where(known, _times(inverse, p), p), own, self._given(factor))
        own = mapped(functools.partial(_times, inverse), own)
        if factor not in self.beliefs:
            return own
        return mapped(lambda p, q: p + _times(1.0 - inverse, q), own, self._belief(factor, scope))

    def log_ratio(self, values: Values, data: Data) -> Array:
        """log p(values, data) - log r(values): the derivative of the log density in the inverse temperature."""
        scope, pieces = self.scope(values, data), []
        for factor in self.moved:
            table = super().table(factor, scope)
            if factor in self.beliefs:
                table = mapped(jnp.subtract, table, self._belief(factor, scope))
            if factor in self.given:
                table = mapped(lambda p, known: jnp.where(known, p, 0.0), table, self._given(factor))
            pieces.append(InstanceDensity(Read(factor, self.factors[factor].plates, {}), table))
        total = eliminate(pieces, (), scope)
        return jnp.where(total > POSSIBLE, total, -jnp.inf)

    def drawn(self, key: Key, data: Data) -> Values:
        """A draw of all variables from the reference; UnsupportedError where one has no draws."""
        found: Values = {}
        for i, (name, variable) in enumerate(self.variables.items()):
            drawn = self._draw(name, variable, jax.random.fold_in(key, i), self.scope(found, data))
            found[name] = with_given(self, name, drawn)
        return found

    def _draw(self, name: str, variable: Random, key: Key, scope: Scope) -> Array:
        if (belief := self.beliefs.get(name)) is None:
            return draw_term(variable.term, variable, scope, key)
        drawn = belief.sample(key)
        return drawn > 0 if variable.domain.is_boolean else drawn

    def _given(self, name: str) -> Placed:
        return Placed(jnp.asarray(self.given[name]), self.variables[name].plates)

    def _belief(self, name: str, scope: Scope) -> Placed:
        variable = self.variables[name]
        belief = Placed(self.beliefs[name], variable.plates)
        return mapped(lambda q, x: q.log_density(x), belief, value(variable, scope), order=variable.plates)


def summed(path: Path) -> Path:
    """The path that tempers the likelihood with all discrete variables summed out; a path without any is itself.

    UnsupportedError where the prior of another variable depends on one of them: it is the reference, drawn from alone.
    """
    states = [name for name, variable in path.variables.items() if variable.domain.is_discrete]
    priors = [name for name in path.touching(states) if name in path.variables and name not in states]
    if priors:
        raise UnsupportedError(
            f"evidence(sum_out=True): the prior of {', '.join(priors)} depends on a discrete variable, so it cannot "
            "stay as it is when that is summed out. Leave sum_out= out: the likelihood given all variables is tempered."
        )
    found = without_states(path, states)
    if found is not path:
        found.moved = [name for name in found.factors if name in path.moved or name == SUMMED]
        found.beliefs = {name: belief for name, belief in path.beliefs.items() if name not in states}
    return found


def _times(power: Array, log_density: Array) -> Array:
    """The product, zero at power zero, also where the density is."""
    finite = jnp.isfinite(log_density)
    product = power * jnp.where(finite, log_density, 0.0)
    return jnp.where(finite, product, jnp.where(power > 0.0, log_density, 0.0))


def _check_reference(path: Path) -> None:
    """UnsupportedError where the reference or the evidence is no number."""
    for name in path.given:
        if path.gathers(name) is None:
            raise UnsupportedError(
                f"Some elements of '{name}' are given, and its elements depend on each other: there is no reference "
                "that the others are drawn from, so there is no path to the evidence. cv.infer gives an evidence of "
                "such models."
            )
    check_proper(path.variables.values())


def check_proper(variables: Iterable[Random]) -> None:
    """UnsupportedError for a prior that does not integrate to one."""
    for variable in variables:
        if any(term.factor.improper for term in all_terms(variable.term)):
            raise UnsupportedError(
                f"'{variable.name}' has a flat prior, which does not integrate to one: the evidence is known up to a "
                "constant only, and means nothing. Give the prior a scale, such as cv.gaussian(0.0, sd=100.0)."
            )
