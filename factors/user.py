"""A user's own factor: a log density with named arguments; the engine derives the rest."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from .arrays import Argument, Array
from .calls import call_checked
from .domains import Domain, positive, real
from .errors import ModelError
from .factor import LINKS, REGISTRY, Factor, Term, told_with_name
from .families import FOR_DOMAIN, ExponentialFamily
from .moments import BY_KIND, Moments
from .switches import double_precision

_DOMAINS = (
    "cv.real, cv.positive, cv.unit, cv.boolean, cv.count, cv.category(k), cv.simplex(k), cv.vector(d) or cv.posdef(d)"
)


@call_checked
def factor(
    name: str,
    *,
    out: Domain,
    log_density: Callable[..., Array],
    expected_log: Callable[..., Array] | None = None,
    predict: Callable[..., ExponentialFamily] | None = None,
    unsupported: Mapping[str, str] | None = None,
    link_densities: Mapping[str, Callable[..., Array]] | None = None,
    **edges: Domain,
) -> Callable[..., Term]:
    """A factor of one's own: log p(out | arguments), written with jax.numpy for one scalar instance.

    `name` is how messages call it. `out` and the further keywords, which name the arguments, are domains;
    `log_density(out, <arguments>)` takes points of them and returns one number, normalised if its evidence is to mean
    anything. Messages are derived: quadrature for up to two random scalars, fixed quasi-random points beyond (see
    `factors/quadrature/derived.py`). Returns a builder: call it with the arguments, by position or name, inside
    `Model.random`.

    What a factor of the vocabulary declares may be given here too (see `Factor` in `factors/factor.py`):
    `expected_log(out, <arguments>)` of moments, `predict(<arguments>)` from moments to the family of `out`,
    `unsupported`, which maps arguments that VMP must refuse while random to the reason and the remedy, and
    `link_densities`, which maps a link of the first argument to the log density behind it, `(out, argument of the link,
    **others)`.

    Raises ModelError when the density is not a function of exactly these arguments, is not a number or NaN at an
    ordinary point, a domain is unknown, the name belongs to the vocabulary, or what is declared contradicts the density
    at that point. Source: knowles2011ncvmp.
    """
    _check_name(name)
    for what, given in (("unsupported", unsupported), ("link_densities", link_densities)):
        if given is not None and not isinstance(given, Mapping):
            raise ModelError(f"cv.factor('{name}'): {what}= is a dictionary by argument; found {given!r}.")
    domains = {"out": out, **edges}
    for edge, domain in domains.items():
        _check_domain(name, edge, domain)
    _check_signature(name, "log_density", log_density, tuple(domains))
    _check_point(name, log_density, domains)
    made = Factor(
        name=name,
        edges={edge: domain.kind for edge, domain in edges.items()},
        out=Always(out),
        log_density=log_density,
        expected_log=expected_log,
        predict=predict,
        unsupported=dict(unsupported or {}),
        link_densities=dict(link_densities or {}),
        bounds=frozenset(edge for edge in ("low", "high") if edges.get(edge) == real),
        divides={"scale": 2} if edges.get("scale") == positive else {},  # it divides what it scales, often squared
    )
    check_declared(made, domains)

    def build(*values: Argument, **named: Argument) -> Term:
        return Term(made, _bound(name, tuple(edges), values, named))

    build.__name__ = build.__qualname__ = name
    build.__doc__ = f"A term of the factor '{name}' with the arguments {', '.join(edges) or 'none'}."
    return told_with_name(build)


@dataclasses.dataclass(frozen=True)
class Always:
    """The domain of what a factor is of, whatever its arguments are; a function of its own could not be pickled."""

    out: Domain

    def __call__(self, given: object) -> Domain:
        return self.out


def check_declared(made: Factor, domains: Mapping[str, Domain]) -> None:
    """Raises ModelError where what is declared of a factor is not of its arguments, or not of its density."""
    name, edges = made.name, tuple(made.edges)
    if made.expected_log is not None:
        _check_signature(name, "expected_log", made.expected_log, ("out", *edges))
        _check_average(made, domains)
    if made.predict is not None:
        _check_signature(name, "predict", made.predict, edges)
        _check_prediction(made, domains)
    for edge in made.unsupported:
        if edge not in domains:
            raise ModelError(
                f"cv.factor('{name}'): unsupported= speaks of {edge!r}. Its arguments are {', '.join(domains)}."
            )
    for link, density in made.link_densities.items():
        if link not in LINKS or not edges:
            raise ModelError(
                f"cv.factor('{name}'): link_densities= has {link!r}, which is no link of an argument. There are "
                f"{', '.join(sorted(LINKS))}, of its first argument."
            )
        if callable(density):
            continue
        raise ModelError(f"cv.factor('{name}'): the link density of {link!r} cannot be called. Give a function.")


def _point_moments(points: Mapping[str, Array], domains: Mapping[str, Domain]) -> dict[str, Moments]:
    """The moments of beliefs without spread."""
    found = {}
    for edge, domain in domains.items():
        family: Any = FOR_DOMAIN[domain.kind]
        found[edge] = family.moments_at(points[edge], *((domain.size,) if domain.is_category else ()))
    return found


def _at_moments(made: Factor, what: str, gives: str, moments: Mapping[str, Moments]) -> PyTree:
    try:
        return getattr(made, what)(**moments)
    except Exception as problem:
        first = str(problem).strip().splitlines()[:1]
        raise ModelError(
            f"cv.factor('{made.name}'): {what} fails at ordinary moments: {type(problem).__name__}: {''.join(first)} "
            f"It takes moments (see `factors/moments.py`) and gives {gives}."
        ) from problem


def _check_prediction(made: Factor, domains: Mapping[str, Domain]) -> None:
    """What is predicted is a member of the family of the outcome."""
    edges = {edge: domain for edge, domain in domains.items() if edge != "out"}
    with double_precision():
        points = _ordinary_points(edges)
        if points is None:
            return
        found = _at_moments(made, "predict", "a family of the outcome", _point_moments(points, edges))
    wanted = FOR_DOMAIN[domains["out"].kind]
    if not isinstance(found, wanted):
        raise ModelError(
            f"cv.factor('{made.name}'): predict gives {type(found).__name__}; beliefs about an outcome that is "
            f"{domains['out']} are {wanted.__name__}. Return `{wanted.__name__}.from_parameters(...)`."
        )


def _check_average(made: Factor, domains: Mapping[str, Domain]) -> None:
    """At points, which are beliefs without spread, the expected log density is the log density."""
    with double_precision():
        points = _ordinary_points(domains)
        if points is None:
            return
        found = jnp.asarray(_at_moments(made, "expected_log", "one number", _point_moments(points, domains)))
        if found.shape != ():
            raise ModelError(
                f"cv.factor('{made.name}'): expected_log gives shape {found.shape}; it must give one number per "
                "instance. Sum over the axes of a vector argument."
            )
        wanted = float(made.log_density(**points))
    if not np.isclose(found, wanted, rtol=1e-6, atol=1e-6):
        where = ", ".join(f"{edge} = {np.asarray(point).tolist()}" for edge, point in points.items())
        raise ModelError(
            f"cv.factor('{made.name}'): expected_log gives {float(found):.6g} at the point {where}, where log_density "
            f"is {wanted:.6g}. At points, whose moments have no spread, both are the same: check the constants."
        )


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not name:
        raise ModelError(f"cv.factor(): the name is {name!r}. Give a non-empty string first.")
    if name in LINKS or (name in REGISTRY and not REGISTRY[name].joined):
        raise ModelError(
            f"cv.factor(): '{name}' is already part of the vocabulary, so error messages could not tell them apart. "
            "Choose another name."
        )


def _check_domain(name: str, edge: str, domain: object) -> None:
    if not isinstance(domain, Domain) or domain.kind not in BY_KIND:
        raise ModelError(
            f"cv.factor('{name}'): the domain of `{edge}` is {domain!r}, which no belief can have. Use {_DOMAINS}."
        )


def _check_signature(name: str, what: str, function: Callable[..., object], wanted: tuple[str, ...]) -> None:
    if not callable(function):
        raise ModelError(
            f"cv.factor('{name}'): {what} is {function!r}, which cannot be called. Give a function of "
            f"({', '.join(wanted)})."
        )
    try:
        signature = inspect.signature(function)
        signature.bind(**dict.fromkeys(wanted))
    except ValueError:  # some built-in functions have no signature: the probe will tell
        return
    except TypeError as problem:
        raise ModelError(
            f"cv.factor('{name}'): {what}{signature} is to be called with the arguments {', '.join(wanted)}, and "
            f"{problem}. Name its arguments 'out' and as the keywords of cv.factor."
        ) from None


def _check_point(name: str, log_density: Callable[..., Array], domains: Mapping[str, Domain]) -> None:
    with double_precision():
        points = _ordinary_points(domains)
        if points is None:
            return
        where = ", ".join(f"{edge} = {np.asarray(point).tolist()}" for edge, point in points.items())
        try:
            found = jnp.asarray(jax.jit(lambda p: log_density(**p))(points))
        except Exception as problem:
            first = str(problem).strip().splitlines()[:1]
            raise ModelError(
                f"cv.factor('{name}'): log_density fails at {where}: {type(problem).__name__}: {''.join(first)} "
                "It must be written with jax.numpy, for one scalar instance, without Python branches on values."
            ) from problem
        if found.shape != () or not jnp.issubdtype(found.dtype, jnp.floating):
            raise ModelError(
                f"cv.factor('{name}'): log_density gives shape {found.shape} of type {found.dtype} at {where}; it must "
                "give one real number per instance. Sum over the axes of a vector argument."
            )
        if bool(jnp.isnan(found)):
            raise ModelError(
                f"cv.factor('{name}'): log_density is NaN at {where}, an ordinary point of its domains. Check it there."
            )


def _ordinary_points(domains: Mapping[str, Domain]) -> dict[str, Array] | None:
    """A point inside each domain; None where the model alone knows a size."""
    points = {edge: _ordinary(domain) for edge, domain in domains.items()}
    known = {edge: point for edge, point in points.items() if point is not None}
    return known if len(known) == len(points) else None


def _ordinary(domain: Domain) -> Array | None:
    """A point inside the domain, or None where its size is not known yet."""
    scalars = {"real": 0.3, "positive": 0.7, "unit": 0.4, "boolean": 1.0, "count": 2.0}
    if domain.kind in scalars:
        return jnp.asarray(scalars[domain.kind])
    if not isinstance(domain.size, int):
        return None
    if domain.kind == "category":
        return jnp.asarray(0)
    if domain.kind == "posdef":
        return jnp.eye(domain.size) + 0.1
    return jnp.full(domain.size, 1.0 / domain.size if domain.kind == "simplex" else 0.3)


def _bound(
    name: str, edges: tuple[str, ...], values: tuple[Argument, ...], named: Mapping[str, Argument]
) -> dict[str, Argument]:
    given = dict(zip(edges, values, strict=False)) | dict(named)
    twice = [edge for edge in edges[: len(values)] if edge in named]
    if len(values) > len(edges) or set(given) != set(edges) or twice:
        found = ", ".join([*(f"#{i + 1}" for i in range(len(values))), *named]) or "none"
        raise ModelError(
            f"{name}() takes the arguments {', '.join(edges) or 'none'}; found {found}. Give each exactly once, e.g. "
            f"{name}({', '.join(f'{edge}=...' for edge in edges)})."
        )
    return {edge: given[edge] for edge in edges}
