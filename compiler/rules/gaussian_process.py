"""Blocks of Gaussian processes: one function at all its inputs is one block, exact given all other messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from ...factors import roles
from ...factors.domains import Domain
from ...factors.errors import ModelError, UnsupportedError
from ...factors.factor import Term
from ..algebra.known import latent_names
from ..blocks.base import Choice
from ..blocks.whole import ProcessBlock, ProcessTerm
from ..graph import Draft
from ..language.nodes import Expr, Random
from ..methods import EXACT

LARGEST = 3000  # points of a dense covariance: 72 MB, and some seconds for a Cholesky factor


def process_of(node: Random) -> ProcessTerm:
    """What the term of a Gaussian process says. Raises ModelError where its arguments do not line up."""
    if not isinstance(node.term, Term):
        raise UnsupportedError(
            f"'{node.name}' is a Gaussian process inside a switch, which would choose at each point between functions "
            "that are defined jointly. Name the process first, f = m.random('f', cv.gaussian_process(...)), and switch "
            "between terms whose mean is f."
        )
    role = node.term.factor.role
    assert isinstance(role, roles.Process)
    inputs, options = node.term.args[role.inputs], node.term.options
    if not inputs.plates:
        raise ModelError(
            f"'{node.name}' is a Gaussian process at '{inputs}', which has no plates: there is a single point. Declare "
            "the inputs over a plate, m.input('x', cv.real, plates=n)."
        )
    parameters = {name: value for name, value in node.term.args.items() if name not in (role.inputs, role.mean)}
    for name, value in parameters.items():
        _check_parameter(node, name, value, inputs)
    dimension = _dimension(inputs.domain)
    inducing = options["inducing"]
    if isinstance(inducing, np.ndarray) and inducing.shape[1] != dimension:
        raise ModelError(
            f"'{node.name}': the inducing inputs have {inducing.shape[1]} coordinates, '{inputs}' has {dimension}. "
            f"Give an array of shape (m, {dimension})."
        )
    return ProcessTerm(inputs, node.term.args[role.mean], parameters, options["kernel"], inducing)


def _dimension(domain: Domain) -> int:
    return domain.size if domain.is_vector else 1


def _check_parameter(node: Random, name: str, value: Expr, inputs: Expr) -> None:
    """A kernel's parameters are those of the whole function."""
    if set(value.plates) & set(inputs.plates):
        raise ModelError(
            f"'{node.name}': the kernel's {name}='{value}' varies over the plates of the inputs, but one function has "
            "one kernel. Declare it without the plates of the inputs."
        )
    if value.domain.is_vector and value.domain.size != _dimension(inputs.domain):
        raise ModelError(
            f"'{node.name}': the kernel's {name} has {value.domain.size} coordinates, the inputs have "
            f"{_dimension(inputs.domain)}. Give one number, or one for each coordinate."
        )


def process_block(draft: Draft, node: Random, random: Iterable[str]) -> ProcessBlock:
    """The block of a process: jointly Gaussian over all points, so exact under every method.

    `random` names the term's edges that are not data, of which only the outcome may be.
    """
    process = process_of(node)
    assert isinstance(node.term, Term)
    for edge in set(random) - {"out"}:
        raise UnsupportedError(
            f"'{node.name}': the argument {edge}='{node.term.args[edge]}' of {node.term.factor.name} is random, and "
            f"{node.term.factor.unsupported[edge]}."
        )
    sparse = process.inducing is not None
    number = len(process.inducing) if isinstance(process.inducing, np.ndarray) else process.inducing
    points = f"{number} inducing inputs" if sparse else "all points jointly"
    accuracy = "exact given its messages, of the approximate prior FITC" if sparse else "exact given its messages"
    reason = "its points are jointly Gaussian: one factorisation gives all marginals under EP and VMP"
    return ProcessBlock(
        name=node.name,
        plates=node.plates,
        latent=latent_names(draft, [node]),
        choice=Choice(EXACT, f"Gaussian process ({process.kernel}), {points}", accuracy, reason),
        out=node,
        process=process,
    )


def check_size(name: str, process: ProcessTerm, sizes: Mapping[str, int]) -> None:
    """Refuses a dense covariance that is too large, before anything is compiled."""
    points = process.points(sizes)
    if process.inducing is None and points > LARGEST:
        raise UnsupportedError(
            f"'{name}' is a Gaussian process at {points} points, whose covariance is a dense matrix of {points}^2 "
            f"numbers, factorised in every sweep: about 2,000 points are practical and {LARGEST} the limit. Give "
            "inducing inputs: cv.gaussian_process(inputs, kernel, inducing=100), or an array of them."
        )
