"""Means and sds of EP's Gaussian beliefs with what pairs of factors add: the same series as that of the evidence.

In coordinates u in which a group of elements that q knows jointly is N(0, I), the deviation e_n of a tilted
distribution has the Hermite coefficients g_nl w_n^l of `gaussian_pairs`. Since E_q u_i F = E_q dF/du_i, a pair moves
the mean by sum_l (w_m g_m,l+1 g_n,l + w_n g_m,l g_n,l+1) r^l / l!, and E (u u' - I) likewise by its second
derivatives. Source: opper2013perturbative.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from ...compiler.blocks.mixture import MixtureBlock
from ...compiler.blocks.site import SiteBlock
from ...factors.errors import UnsupportedError
from ...factors.moments import Real, Vector
from ..answers.inferred import Inferred
from ..answers.outcome import Outcome
from ..values.joint_beliefs import joint_sizes, member_moments
from .corrected_evidence import checked
from .gaussian_pairs import UNKNOWN, Met, Part, Rows, contracted, met, rows_of

MOST = 3_000  # rows, whose pairs are kept all at once


class CorrectedMarginal(NamedTuple):
    """Mean and sd of a variable, each shaped plates + event."""

    mean: np.ndarray
    sd: np.ndarray


def corrected_marginals(posterior: Inferred) -> dict[str, CorrectedMarginal]:
    """The marginals of `posterior` with the correction of second order: see `Posterior.corrected_marginals`."""
    outcome = checked(posterior)
    sites = [block for block in outcome.machine.ep_blocks.values() if isinstance(block, SiteBlock)]
    if not sites or any(isinstance(block, MixtureBlock) for block in outcome.machine.ep_blocks.values()):
        raise UnsupportedError(
            "posterior.corrected_marginals is known for variables of linear forms of Gaussians under EP, and this "
            "model is not made of these. posterior.importance() weighs draws of any beliefs."
        )
    rows, frames = rows_of(outcome)
    if len(rows.derivatives) > MOST:
        raise UnsupportedError(
            f"posterior.corrected_marginals keeps all pairs of rows, of up to {MOST}, and here are "
            f"{len(rows.derivatives)}. posterior.importance() weighs draws of any beliefs."
        )
    meeting, found = met(rows, slice(None)), {}
    everything = contracted(rows.derivatives, rows.derivatives, meeting)
    np.fill_diagonal(everything, 0.0)
    if not np.isfinite(everything).all():
        raise UnsupportedError(
            f"posterior.corrected_marginals: {UNKNOWN} posterior.importance() weighs draws of any beliefs."
        )
    normaliser, sums = np.exp(0.5 * everything.sum()), _sums(rows, meeting)
    for name, frame in frames.items():
        mean, covariance = _changes(sums, rows.parts.get(name, []), frame.root.shape)
        mean, covariance = mean[frame.group] / normaliser, covariance[frame.group] / normaliser
        covariance = covariance - mean[:, :, None] * mean[:, None, :]
        shift = np.einsum("edk,ek->ed", frame.root, mean)
        more = np.einsum("edk,ekl,efl->edf", frame.root, covariance, frame.root)
        found |= _told(outcome, name, shift, more)
    return found


class _Sums(NamedTuple):
    """Of rows m, sums over n: with m's next order, and the one after; of pairs, with the next orders of both, and of
    the second orders of both with r itself, which counts between different groups alone."""

    first: np.ndarray
    second: np.ndarray
    both: np.ndarray
    pairs: np.ndarray
    r: np.ndarray


def _sums(rows: Rows, meeting: Met) -> _Sums:
    g, apart = rows.derivatives, ~np.eye(len(rows.derivatives), dtype=bool)
    return _Sums(
        (contracted(g[:, 1:], g, meeting) * apart).sum(axis=1),
        (contracted(g[:, 2:], g, meeting) * apart).sum(axis=1),
        contracted(g[:, 1:], g[:, 1:], Met(meeting.r, np.zeros_like(meeting.r))) * apart,
        np.multiply.outer(g[:, 0], g[:, 0]) * apart,
        meeting.r,
    )


def _changes(sums: _Sums, parts: list[Part], shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """By group of a variable the sums over all pairs of E u F and E (u u' - I) F, F = e_m e_n."""
    mean, covariance = np.zeros((shape[0], shape[2])), np.zeros((shape[0], shape[2], shape[2]))
    for one in parts:
        np.add.at(mean, one.group, one.weight * sums.first[:, None])
        np.add.at(covariance, one.group, sums.second[:, None, None] * one.weight[:, :, None] * one.weight[:, None])
        for other in parts:
            meet = one.group[:, None] == other.group
            own = np.where(meet, one.weight @ other.weight.T, 0.0)
            along = np.where(meet, sums.both + sums.pairs * (sums.r - own), 0.0) @ other.weight
            np.add.at(covariance, one.group, one.weight[:, :, None] * along[:, None])
    return mean, covariance


def _told(outcome: Outcome, name: str, shift: np.ndarray, more: np.ndarray) -> dict[str, CorrectedMarginal]:
    """The marginals of a variable, or of those that share a belief, with these changes of mean and covariance."""
    variances = np.einsum("edd->ed", more)
    for joint in outcome.graph.joints:
        if joint.variable.name == name:
            sizes = {**outcome.machine.sizes, **joint_sizes(outcome.graph)}
            plates = tuple(sizes[plate.name] for plate in joint.variable.plates)
            moved = Vector(
                jnp.asarray(shift.reshape((*plates, -1))), jnp.asarray(more.reshape((*plates, *more.shape[1:])))
            )
            found = {}
            for member in joint.members:
                own = member_moments(member, joint, moved, sizes)
                found[member.name] = _moved(outcome, member.name, np.asarray(own.mean), _spread(own))
            return found
    return {name: _moved(outcome, name, shift, variances)}


def _spread(moments: Real | Vector) -> np.ndarray:
    """Variances, also of a vector."""
    if isinstance(moments, Vector):
        return np.diagonal(np.asarray(moments.covariance), axis1=-2, axis2=-1)
    return np.asarray(moments.variance)


def _moved(outcome: Outcome, name: str, shift: np.ndarray, more: np.ndarray) -> CorrectedMarginal:
    mean, sd = np.asarray(outcome[name].mean, float), np.asarray(outcome[name].sd, float)
    variance = sd**2 + more.reshape(sd.shape)
    return CorrectedMarginal(mean + shift.reshape(mean.shape), np.sqrt(np.maximum(variance, 0.0)))
