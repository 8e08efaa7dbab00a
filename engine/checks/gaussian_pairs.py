"""Pairs of EP factors of linear forms of Gaussians: what they add to the log evidence, by cumulants.

With log Z_n(m) the evidence of factor n at a cavity mean m of its form s_n, and g_nl its l-th derivative, the tilted
cumulants of order l >= 3 are g_nl (V c_n / d_n)^(l), V being the covariance of q, c_n the coefficients and d_n the
share of precision that the cavity has. So a pair adds sum_l g_ml g_nl r^l / l!, r = c_m . V c_n / (d_m d_n). Where q
is a product over elements their covariances are left out too: a pair that shares several elements adds
g_m2 g_n2 (r^2 - sum_e r_e^2) / 2. Source: opper2013perturbative.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ...compiler.blocks.site import SiteBlock
from ...compiler.blocks.whole import ProcessBlock
from ...factors.arrays import Array
from ...factors.errors import UnsupportedError
from ...factors.switches import double_precision
from ..answers.outcome import Outcome
from ..blocks import gaussian_process
from ..blocks.site import sites
from ..blocks.site.site_data import Prepared
from ..data.missing_and_sparse import Arrays
from .skewness import End, end_of, log_evidence_derivatives, ready_at_end

HIGHEST = 6  # order of the derivatives
CHUNK = 256  # rows whose pairs are looked at together
MOST = 20_000  # rows
UNKNOWN = "A cavity is no distribution, or a tilted one has no cumulants."


class Frame(NamedTuple):
    """Of each element of a variable: what it is known jointly with, and its own rows of L, V = L L^T."""

    group: np.ndarray
    root: np.ndarray


class Part(NamedTuple):
    """One term of the forms of all rows: the group of its element, and c L / d."""

    group: np.ndarray
    weight: np.ndarray


class Rows(NamedTuple):
    """By row g_2, g_3, ..., and by variable the terms."""

    derivatives: np.ndarray
    parts: dict[str, list[Part]]


class Met(NamedTuple):
    """How the forms of some rows meet those of all: r, and the sum over groups of the squares of their own r."""

    r: np.ndarray
    squares: np.ndarray


def gaussian_pairs(posterior: Outcome) -> tuple[float, float, str]:
    """The sum of what pairs add to log R, the sum of its sizes, and what makes it no number."""
    rows, _ = rows_of(posterior)
    total = size = 0.0
    for first in range(0, len(rows.derivatives), CHUNK):
        here = slice(first, first + CHUNK)
        added = contracted(rows.derivatives[here], rows.derivatives, met(rows, here))
        np.fill_diagonal(added[:, first:], 0.0)
        total, size = total + 0.5 * float(added.sum()), size + 0.5 * float(np.abs(added).sum())
    if not math.isfinite(total):
        return 0.0, math.inf, UNKNOWN
    return total, size, ""


def contracted(one: np.ndarray, other: np.ndarray, meeting: Met) -> np.ndarray:
    """By pair the sum over orders l of g_l g'_l r^l / l!, of derivatives from the second on, of which the second is of
    different groups alone."""
    total = 0.5 * (meeting.r**2 - meeting.squares) * np.multiply.outer(one[:, 0], other[:, 0])
    for at in range(1, min(one.shape[1], other.shape[1])):
        total += np.multiply.outer(one[:, at], other[:, at]) * meeting.r ** (at + 2) / math.factorial(at + 2)
    return total


def met(rows: Rows, here: slice) -> Met:
    """How some rows meet all."""
    r, squares = np.zeros((2, len(rows.derivatives[here]), len(rows.derivatives)))
    for parts in rows.parts.values():
        for mine in parts:
            for theirs in parts:
                meet = mine.group[here, None] == theirs.group
                own = np.where(meet, mine.weight[here] @ theirs.weight.T, 0.0)
                r, squares = r + own, squares + own**2
    return Met(r, squares)


def rows_of(posterior: Outcome) -> tuple[Rows, dict[str, Frame]]:
    """All rows of all blocks at the fixed point, and what the beliefs know jointly."""
    blocks = [(n, block) for n, block in posterior.machine.ep_blocks.items() if isinstance(block, SiteBlock)]
    with double_precision():
        frames = _frames(posterior)
        each = [_rows(posterior, number, block, frames) for number, block in blocks]
    counts = [len(own.derivatives) for own in each]
    if sum(counts) > MOST:
        raise UnsupportedError(
            f"posterior.corrected_evidence looks at all pairs of factors, which it does of up to {MOST}. "
            "posterior.check_evidence() measures the evidence of any model."
        )
    parts: dict[str, list[Part]] = {}
    for i, own in enumerate(each):
        around = (sum(counts[:i]), sum(counts[i + 1 :]))
        for name, mine in own.parts.items():
            parts.setdefault(name, []).extend(
                Part(np.pad(part.group, around), np.pad(part.weight, (around, (0, 0)))) for part in mine
            )
    derivatives = [own.derivatives for own in each] or [np.zeros((0, HIGHEST - 1))]
    return Rows(np.concatenate(derivatives), parts), frames


def _rows(posterior: Outcome, number: str, block: SiteBlock, frames: dict[str, Frame]) -> Rows:
    """The rows of a block at the fixed point."""
    if block.over is not None or block.atoms:
        what = "several" if block.over is not None else "an outcome that is random"
        raise UnsupportedError(
            f"posterior.corrected_evidence is known for factors of one linear form with a known outcome, and "
            f"'{block.name}' has {what}. posterior.check_evidence() measures the evidence of any model."
        )
    machine = posterior.machine

    def read(end: End, arrays: Arrays) -> list[Array]:
        found = sites.by_batch(_read, block, *ready_at_end(machine, end, arrays, number, block))
        return jax.tree.map(lambda a: a.reshape((-1, *a.shape[2:])), found)

    found = machine.function("pairs", (number,), read)(end_of(posterior, number), posterior.arrays)
    present, derivatives, *terms = jax.tree.map(np.asarray, found)
    parts: dict[str, list[Part]] = {}
    for term, (position, along) in zip(block.form.terms, terms, strict=True):
        frame, place = frames[term.variable.name], position[present]
        weight = np.einsum("nd,ndk->nk", along[present], frame.root[place])
        parts.setdefault(term.variable.name, []).append(Part(frame.group[place], weight))
    return Rows(derivatives[present], {name: _merged(own) for name, own in parts.items()})


def _merged(parts: list[Part]) -> list[Part]:
    """Where two terms of a row are of one group, the first takes over the second's weight."""
    parts = list(parts)
    for j in range(len(parts)):
        for i in range(j):
            same = (parts[i].group == parts[j].group)[:, None]
            moved = np.where(same, parts[j].weight, 0.0)
            parts[i] = parts[i]._replace(weight=parts[i].weight + moved)
            parts[j] = parts[j]._replace(weight=parts[j].weight - moved)
    return parts


def _read(block: SiteBlock, local: Prepared, messages: sites.Messages, batch: sites.Batch) -> list:
    """Which rows count, derivatives of log Z, nan of floored rows, and by term the element and c direction / d."""
    rows = jnp.zeros_like(batch.mean)
    derivatives, terms = log_evidence_derivatives(block, local.out, batch.mean, batch.variance, 1.0, HIGHEST), []
    for data, projection in zip(local.terms, batch.projections, strict=True):
        share = data.coefficient / projection.denominator + rows
        place = (0 if data.position is None else data.position) + rows.astype(int)
        along = share[:, None] if data.direction is None else share[:, None] * data.direction
        terms.append((place, along))
    present = rows == 0.0 if local.present is None else local.present & (rows == 0.0)
    floored = sum((projection.floored for projection in batch.projections), rows.astype(bool))
    derivatives = jnp.where(floored[:, None], jnp.nan, jnp.stack(derivatives, axis=-1))  # that cavity has none
    return [present, derivatives, *terms]


def _frames(posterior: Outcome) -> dict[str, Frame]:
    """What q knows jointly: a function of a process, a vector, or a number alone."""
    machine, outputs = posterior.machine, posterior.result.outputs
    beliefs = {name: tuple(map(jnp.asarray, n)) for name, n in outputs["beliefs"].items()}
    found: dict[str, Frame] = {}
    for number, block in machine.ep_blocks.items():
        if isinstance(block, ProcessBlock) and block.latent:
            scope, flat = machine.scope(posterior.arrays), machine.flat(block, beliefs)
            functions, covariance = gaussian_process.joint_covariance(block, flat, outputs["messages"][number], scope)
            roots = np.linalg.cholesky(np.asarray(covariance)).reshape((functions.size, 1, -1))
            order = np.argsort(np.ravel(functions))
            group = np.repeat(np.arange(len(functions)), functions.shape[1])
            found[block.out.name] = Frame(group[order], roots[order])
    for block in machine.ep_blocks.values():
        for name, naturals in machine.flat(block, beliefs).items():
            if name not in found:
                found[name] = _apart(-2.0 * np.asarray(naturals[1]))
    return found


def _apart(precisions: np.ndarray) -> Frame:
    """Elements that q takes as independent, with these precisions."""
    elements = np.arange(len(precisions))
    if precisions.ndim == 1:
        return Frame(elements, (1.0 / np.sqrt(precisions))[:, None, None])
    return Frame(elements, np.linalg.cholesky(np.linalg.inv(precisions)))
