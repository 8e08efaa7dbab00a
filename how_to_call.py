"""Calls of builders that Python itself would refuse: what was asked, and how it is written."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Mapping, Sequence

from .factors.arrays import Argument
from .factors.errors import ModelError
from .factors.numbers import brief

SAID_OTHERWISE = {
    "sd": ("std", "sigma", "stddev", "stdev", "scale", "standard_deviation"),
    "scale": ("sd", "sigma", "std", "beta", "b"),
    "variance": ("var", "sigma2", "sigma_squared"),
    "precision": ("tau", "prec", "lam", "lambda_"),
    "covariance": ("cov", "sigma", "scale"),
    "mean": ("mu", "loc", "location", "m"),
    "location": ("mu", "loc", "mean"),
    "rate": ("lam", "lambda_", "beta", "mu", "intensity"),
    "shape": ("alpha", "a", "k", "concentration"),
    "concentration": ("alpha", "a"),
    "dof": ("nu", "df", "degrees_of_freedom"),
    "probability": ("p", "prob", "theta", "probs"),
    "probabilities": ("p", "probs", "prob", "theta"),
    "low": ("lower", "min", "a", "minimum"),
    "high": ("upper", "max", "b", "maximum"),
    "trials": ("n", "count"),
    "a": ("alpha", "alpha1", "concentration1"),
    "b": ("beta", "alpha2", "concentration0"),
}
"""What arguments are called elsewhere, by our name."""


def call_refusal(
    builder: str, signature: inspect.Signature, args: Sequence[Argument], kwargs: Mapping[str, Argument]
) -> ModelError:
    """Of a call that does not fit the signature: too many by place, unknown, missing or given twice."""
    parameters = signature.parameters
    by_place = [n for n, p in parameters.items() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    by_name = [n for n, p in parameters.items() if p.kind is p.KEYWORD_ONLY]
    written = ", ".join([*map(brief, args), *(f"{name}={brief(value)}" for name, value in kwargs.items())])
    head = f"{builder}({written}): "
    several = [f"*{n}" for n, p in parameters.items() if p.kind is p.VAR_POSITIONAL]
    usual = f" It is called as {builder}({', '.join([*by_place, *several, *(f'{name}=' for name in by_name)])})."
    if unknown := [name for name in kwargs if name not in parameters]:
        meant = _meant(unknown[0], [name for name in parameters if name not in kwargs])
        return ModelError(f"{head}there is no {unknown[0]}=.{f' Here it is {meant}=.' if meant else ''}{usual}")
    if len(args) > len(by_place):
        takes = f"{len(by_place)} argument{'s' if len(by_place) != 1 else ''} by place"
        name = f" Say what {brief(args[len(by_place)])} is, by name: {_listed(by_name)}." if by_name else ""
        return ModelError(f"{head}it takes {takes}; found {len(args)}.{name}{usual}")
    given = [*by_place[: len(args)], *kwargs]
    if twice := [name for name in by_place[: len(args)] if name in kwargs]:
        return ModelError(f"{head}{twice[0]} is given twice, by place and by name.{usual}")
    lacks = [n for n, p in parameters.items() if n not in given and p.default is p.empty and f"*{n}" not in several]
    return ModelError(f"{head}{_listed(lacks, 'and')} must be given.{usual}")


def _meant(name: str, parameters: Sequence[str]) -> str:
    """Which parameter somebody means who calls it by this name; empty where nobody knows."""
    for own in parameters:
        if name in SAID_OTHERWISE.get(own, ()):
            return own
    return next(iter(difflib.get_close_matches(name, parameters, 1, 0.7)), "")


def _listed(names: Sequence[str], last: str = "or") -> str:
    named = [f"{name}=" for name in names]
    return f"{', '.join(named[:-1])} {last} {named[-1]}" if len(named) > 1 else named[0]
