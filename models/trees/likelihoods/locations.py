"""What one sweep's messages give besides: the evidence of each column, and draws of all locations."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..shapes.arrays import Arrays, Messages, nodes

LOG_2PI = float(np.log(2.0 * np.pi))


class Columns(NamedTuple):
    """The log evidence of each column, `-(known log 2 pi + log_determinant + quadratic) / 2`.

    Attributes:
        known: (D,) known leaves.
        log_determinant: (D,) of their covariance.
        quadratic: (D,) their squared length under its inverse: data scaled by s have it scaled by s^2.
    """

    known: np.ndarray
    log_determinant: np.ndarray
    quadratic: np.ndarray

    @property
    def log_evidence(self) -> np.ndarray:
        """(D,)."""
        return -0.5 * (self.known * LOG_2PI + self.log_determinant + self.quadratic)


def column_evidence(arrays: Arrays, messages: Messages) -> Columns:
    """The evidence column by column, from the upward messages of one sweep and without another.

    At a branch point with precision-weighted mean m of its children's messages, of precisions w_k at the branch point
    and means m_k, the merging contributes `sum log w_k - log sum w_k` to minus the log determinant and
    `sum w_k (m_k - m)^2` to the quadratic form; above the top, the Gaussian at the origin does.
    """
    parent = np.asarray(arrays.parent)
    mean, variance = np.asarray(messages.up_mean), np.asarray(messages.up_variance)
    rows, columns = mean.shape
    node = nodes(arrays)
    above = parent[node]
    at_node = variance[node] + lengths(arrays)[node, None]
    known = np.isfinite(at_node)
    precision = np.where(known, 1.0 / np.where(known, at_node, 1.0), 0.0)  # (B, P)
    log_precision = np.where(known, np.log(np.where(known, precision, 1.0)), 0.0)
    merged = np.where((above < rows - 1)[:, None], mean[above], 0.0)  # the origin is at zero
    quadratic = (precision * (mean[node] - merged) ** 2).sum(axis=0)

    total = np.zeros((rows, variance.shape[1]))
    np.add.at(total, above, precision)
    total[-1] = 1.0  # nothing is merged at the origin
    log_total = np.where(total > 0.0, np.log(np.where(total > 0.0, total, 1.0)), 0.0)
    log_determinant = log_total.sum(axis=0) - log_precision.sum(axis=0)
    leaves = np.isfinite(variance[: rows // 2]).sum(axis=0)
    return Columns(np.broadcast_to(leaves, columns).copy(), np.broadcast_to(log_determinant, columns).copy(), quadratic)


def draw_locations(arrays: Arrays, messages: Messages, random: np.random.Generator) -> np.ndarray:
    """A draw of all locations from their posterior, in units where the diffusion variance is 1: from the origin down,
    `x_v | x_u` being the product of `N(x_u, t_v - t_u)` and the upward message of v.

    Returns:
        (2N, D); rows of the origin and of free slots are zero. The first N rows are the leaves: locations, not data.
    """
    parent, depth = np.asarray(arrays.parent), np.asarray(arrays.depth)
    mean, variance = np.asarray(messages.up_mean), np.asarray(messages.up_variance)
    node = nodes(arrays)
    node = node[np.argsort(depth[node], kind="stable")]
    length = lengths(arrays)[:, None]
    known = np.isfinite(variance)
    below = np.where(known, variance, 1.0)
    pull = np.where(known, length / np.maximum(below + length, np.finfo(float).tiny), 0.0)  # towards the message
    spread = np.where(known, pull * below, np.maximum(length, 0.0))
    location = pull * mean + np.sqrt(spread) * random.standard_normal(mean.shape)
    location[parent < 0] = 0.0
    for v in node:
        location[v] += (1.0 - pull[v]) * location[parent[v]]
    return location


def lengths(arrays: Arrays) -> np.ndarray:
    """(2N,) time between each node and its parent, without cancellation; 0 for the origin and free slots."""
    parent, depth = np.asarray(arrays.parent), np.asarray(arrays.depth)
    used = parent >= 0
    above = np.where(used, depth[np.where(used, parent, 0)], 0.0)
    at = np.where(used, depth, 0.0)
    return np.exp(-above) * -np.expm1(np.where(np.isinf(at), -np.inf, above - at))
