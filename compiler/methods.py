"""Methods: how messages are computed, as the user asks for it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping

import numpy as np

from ..factors import LINKS
from ..factors.calls import call_checked
from ..factors.errors import ModelError


@dataclasses.dataclass(frozen=True)
class Method:
    """A request for message operators.

    `name` is auto, ep, vmp, ncvmp or power; `alpha` the power (1 is EP), `bound` an option of a link.
    """

    name: str
    alpha: float = 1.0
    bound: str | None = None

    def __str__(self) -> str:
        if self.name == "power":
            return f"power({self.alpha:g})"
        if self == EXACT:
            return "any method"
        return self.name if self.name == "auto" else self.name.upper()


EXACT = Method("exact")  # the same message under every method
AUTO, EP, VMP, NCVMP = Method("auto"), Method("ep"), Method("vmp"), Method("ncvmp")
_BY_NAME = {"auto": AUTO, "ep": EP, "vmp": VMP, "ncvmp": NCVMP}


@call_checked
def power(alpha: float) -> Method:
    """Power EP with the alpha-divergence of the given `alpha` in (0, 1]: 1 is EP, and towards 0 it meets VMP.

    Returns a method for `infer(..., method=...)`. Raises ModelError for an alpha outside (0, 1].
    Source: minka2005divergence.
    """
    if isinstance(alpha, bool) or not isinstance(alpha, (int, float, np.number)) or not 0 < alpha <= 1:
        raise ModelError(
            f"power(alpha) needs 0 < alpha <= 1; found {alpha!r}. Use method='vmp' for the limit 0, 'ep' for 1."
        )
    return EP if alpha == 1 else Method("power", float(alpha))


@call_checked
def ncvmp(bound: str | None = None) -> Method:
    """Non-conjugate VMP, with the named `bound` of the link inside the factor.

    `bound` is one of quadrature, tilted, jaakkola for a logistic link, and one of quadrature, tilted, log, quadratic,
    adaptive (tilted or quadratic, the better for each row), bohning, taylor for a softmax; the first is the default. A
    multinomial probit has auxiliary, a product along a plate (`cumprod`) multinomial and taylor. Asked for in a whole
    model it applies where a link has it. Returns a method for `infer(..., method=...)`. Raises ModelError for a name
    that no link has; one that no link of the model has is an error of `infer`.
    Source: knowles2011ncvmp.
    """
    known = sorted({name for link in LINKS.values() for name in link.bounds})
    if bound is not None and not (isinstance(bound, str) and bound in known):
        raise ModelError(f"ncvmp(bound={bound!r}): there is no such bound. Those of the links are {', '.join(known)}.")
    return Method("ncvmp", bound=bound)


def checked_method(method: object) -> Method | dict[str, Method]:
    """A method, or several by name, in the form in which they can be compared; ModelError for anything else."""
    if not isinstance(method, Mapping):
        return parse(method)
    return {name: parse(value) for name, value in method.items()}


def parse(method: object) -> Method:
    """A method from its name or itself."""
    if isinstance(method, Method):
        return method
    if isinstance(method, str) and method in _BY_NAME:
        return _BY_NAME[method]
    raise ModelError(
        f"There is no method {method!r}. Use one of {', '.join(map(repr, _BY_NAME))}, cv.power(alpha), "
        "cv.ncvmp(bound=...), or a dictionary of these by variable name."
    )


def resolve(method: object, known: Iterable[str]) -> tuple[Method, dict[str, Method]]:
    """The default method and those asked for by name; names must be variables, lets or constraints of the model."""
    if not isinstance(method, Mapping):
        return parse(method), {}
    unknown = [name for name in method if name not in known]
    if unknown:
        raise ModelError(
            f"method= names {unknown[0]!r}, which the model does not have. Its variables and constraints are: "
            f"{', '.join(known)}."
        )
    return AUTO, {name: parse(value) for name, value in method.items()}
