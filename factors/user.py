"""A user's own factor: a log density with named arguments; the engine derives the rest."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .domains import Domain
from .errors import ModelError
from .factor import LINKS, REGISTRY, Factor, Term, told_with_name
from .moments import BY_KIND

_DOMAINS = (
    "cv.real, cv.positive, cv.unit, cv.boolean, cv.count, cv.category(k), cv.simplex(k), cv.vector(d) or cv.posdef(d)"
)


def factor(name: str, *, out: Domain, log_density: Callable[..., Any], **edges: Domain) -> Callable[..., Term]:
    """A factor of one's own: log p(out | arguments), written with jax.numpy for one scalar instance.

    `out` and the further keywords, which name the arguments, are domains; `log_density(out, <arguments>)` takes points
    of them and returns one number, normalised if its evidence is to mean anything. Messages are derived: quadrature
    for up to two random scalars, fixed quasi-random points beyond (see `factors/derived.py`). Returns a builder: call
    it with the arguments, by position or name, inside `Model.random`.

    Raises ModelError when the density is not a function of exactly these arguments, is not a number or NaN at an
    ordinary point, a domain is unknown, or the name belongs to the vocabulary. Source: knowles2011ncvmp.
    """
    _check_name(name)
    domains = {"out": out, **edges}
    for edge, domain in domains.items():
        _check_domain(name, edge, domain)
    _check_signature(name, log_density, tuple(domains))
    _check_point(name, log_density, domains)
    made = Factor(
        name=name,
        edges={edge: domain.kind for edge, domain in edges.items()},
        out=lambda given: out,
        log_density=log_density,
    )

    def build(*values: Any, **named: Any) -> Term:
        return Term(made, _bound(name, tuple(edges), values, named))

    build.__name__ = build.__qualname__ = name
    build.__doc__ = f"A term of the factor '{name}' with the arguments {', '.join(edges) or 'none'}."
    return told_with_name(build)


def _check_name(name: Any) -> None:
    if not isinstance(name, str) or not name:
        raise ModelError(f"cv.factor(): the name is {name!r}. Give a non-empty string first.")
    if name in REGISTRY or name in LINKS:
        raise ModelError(
            f"cv.factor(): '{name}' is already part of the vocabulary, so error messages could not tell them apart. "
            "Choose another name."
        )


def _check_domain(name: str, edge: str, domain: Any) -> None:
    if not isinstance(domain, Domain) or domain.kind not in BY_KIND:
        raise ModelError(
            f"cv.factor('{name}'): the domain of `{edge}` is {domain!r}, which no belief can have. Use {_DOMAINS}."
        )


def _check_signature(name: str, log_density: Any, wanted: tuple[str, ...]) -> None:
    if not callable(log_density):
        raise ModelError(
            f"cv.factor('{name}'): log_density is {log_density!r}, which cannot be called. Give a function of "
            f"({', '.join(wanted)})."
        )
    try:
        signature = inspect.signature(log_density)
        signature.bind(**dict.fromkeys(wanted))
    except ValueError:  # some built-in functions have no signature: the probe will tell
        return
    except TypeError as problem:
        raise ModelError(
            f"cv.factor('{name}'): log_density{signature} is to be called with the arguments {', '.join(wanted)}, and "
            f"{problem}. Name its arguments 'out' and as the keywords of cv.factor."
        ) from None


def _check_point(name: str, log_density: Callable[..., Any], domains: Mapping[str, Domain]) -> None:
    with jax.enable_x64(True):
        points = {edge: _ordinary(domain) for edge, domain in domains.items()}
        if any(point is None for point in points.values()):
            return  # a size that only the model knows
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


def _ordinary(domain: Domain) -> Any:
    """A point inside the domain, or None where its size is not known yet."""
    scalars = {"real": 0.3, "positive": 0.7, "unit": 0.4, "boolean": 1.0, "count": 2.0}
    if domain.kind in scalars:
        return jnp.asarray(scalars[domain.kind])
    if domain.kind == "category":
        return jnp.asarray(0)
    if not isinstance(domain.size, int):
        return None
    if domain.kind == "posdef":
        return jnp.eye(domain.size) + 0.1
    return jnp.full(domain.size, 1.0 / domain.size if domain.kind == "simplex" else 0.3)


def _bound(name: str, edges: tuple[str, ...], values: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, Any]:
    given = dict(zip(edges, values, strict=False)) | dict(named)
    twice = [edge for edge in edges[: len(values)] if edge in named]
    if len(values) > len(edges) or set(given) != set(edges) or twice:
        found = ", ".join([*(f"#{i + 1}" for i in range(len(values))), *named]) or "none"
        raise ModelError(
            f"{name}() takes the arguments {', '.join(edges) or 'none'}; found {found}. Give each exactly once, e.g. "
            f"{name}({', '.join(f'{edge}=...' for edge in edges)})."
        )
    return {edge: given[edge] for edge in edges}
