"""Gaussian messages on a tree: merging children, renewing a path, cavities on the way down.

The rules of `cavity.models.trees.messages`, written out for single numbers, with one division for a share.
"""

from __future__ import annotations

from typing import Any

from .jit import LOG_2PI, called, flat_or, inner, log


@inner
def merge(s: Any, u: Any) -> Any:
    """Renew the upward message of u, and its norm, from the messages of its children."""
    columns, wide = s.mean.shape[1], s.variance.shape[1] > 1
    if u == len(s.parent) - 1:
        s.norm[u] = _at_origin(s, s.child[u])
    elif s.degree[u] > 2:
        s.norm[u] = _merge_many(s, u)
    else:
        one = s.child[u]
        two = s.next[one]
        if wide:
            total = 0.0
            for d in range(columns):
                p, q = s.variance[one, d] + s.length[one], s.variance[two, d] + s.length[two]
                apart = s.mean[two, d] - s.mean[one, d]
                share = p / (p + q)
                s.mean[u, d] = s.mean[one, d] + share * apart
                s.variance[u, d] = share * q
                total += flat_or(p + q, log(p + q) + LOG_2PI + apart * apart / (p + q))
            s.norm[u] = -0.5 * total
        else:
            p, q = s.variance[one, 0] + s.length[one], s.variance[two, 0] + s.length[two]
            share, square = p / (p + q), 0.0
            for d in range(columns):
                apart = s.mean[two, d] - s.mean[one, d]
                s.mean[u, d] = s.mean[one, d] + share * apart
                square += apart * apart
            s.variance[u, 0] = share * q
            s.norm[u] = flat_or(p + q, -0.5 * (columns * (log(p + q) + LOG_2PI) + square / (p + q)))


@inner
def _at_origin(s: Any, top: Any) -> Any:
    """Log density of location 0 under the message of the top."""
    columns, wide = s.mean.shape[1], s.variance.shape[1] > 1
    total = 0.0
    if wide:
        for d in range(columns):
            p = s.variance[top, d] + s.length[top]
            total += flat_or(p, log(p) + LOG_2PI + s.mean[top, d] ** 2 / p)
        return -0.5 * total
    for d in range(columns):
        total += s.mean[top, d] ** 2
    p = s.variance[top, 0] + s.length[top]
    return flat_or(p, -0.5 * (columns * (log(p) + LOG_2PI) + total / p))


@called
def _merge_many(s: Any, u: Any) -> Any:
    """`merge` for any number of children: sums of precisions; uniform messages count 1."""
    columns, parts = s.mean.shape[1], s.variance.shape[1]
    s.mean[u], s.variance[u] = 0.0, 0.0
    v = s.child[u]
    while v >= 0:
        for d in range(parts):
            s.variance[u, d] += 1.0 / (s.variance[v, d] + s.length[v])
        for d in range(columns):
            s.mean[u, d] += s.mean[v, d] / (s.variance[v, d % parts] + s.length[v])
        v = s.next[v]
    each = 1 if parts > 1 else columns
    total = 0.0
    for d in range(parts):
        s.variance[u, d] = 1.0 / s.variance[u, d]
        total -= each * flat_or(s.variance[u, d], log(s.variance[u, d]) + LOG_2PI)
    for d in range(columns):
        s.mean[u, d] *= s.variance[u, d % parts]
    v = s.child[u]
    while v >= 0:
        for d in range(parts):
            p = s.variance[v, d] + s.length[v]
            total += each * flat_or(p, log(p) + LOG_2PI)
        for d in range(columns):
            total += (s.mean[v, d] - s.mean[u, d]) ** 2 / (s.variance[v, d % parts] + s.length[v])
        v = s.next[v]
    return -0.5 * total


@called
def renew(s: Any, v: Any) -> Any:
    """Renew the upward messages of v and of everything above it; returns the change of the log evidence."""
    change = 0.0
    while v >= 0:
        before = s.norm[v]
        merge(s, v)
        change += s.norm[v] - before
        v = s.parent[v]
    return change


@called
def sweep_up(s: Any, order: Any, n: Any) -> Any:
    """Renew all upward messages, given a preorder; returns the log evidence."""
    leaves, origin = len(s.parent) // 2, len(s.parent) - 1
    total = 0.0
    for i in range(n - 1, -1, -1):
        if order[i] >= leaves:
            merge(s, order[i])
            total += s.norm[order[i]]
    merge(s, origin)
    return total + s.norm[origin]


@inner
def cavity(s: Any, mean: Any, variance: Any, above: Any, v: Any, row: Any) -> Any:
    """Write the downward message of v into `row`; that of its parent is in row `above`."""
    u = s.parent[v]
    columns, parts = mean.shape[1], variance.shape[1]
    if u == len(s.parent) - 1:
        mean[row], variance[row] = 0.0, 0.0
        return
    if s.degree[u] > 2:
        _cavity_many(s, mean, variance, above, v, row)
        return
    other = s.child[u] if s.child[u] != v else s.next[v]
    if parts > 1:
        for d in range(columns):
            p, q = variance[above, d] + s.length[u], s.variance[other, d] + s.length[other]
            share = p / (p + q)
            mean[row, d] = mean[above, d] + share * (s.mean[other, d] - mean[above, d])
            variance[row, d] = share * q
    else:
        p, q = variance[above, 0] + s.length[u], s.variance[other, 0] + s.length[other]
        share = p / (p + q)
        for d in range(columns):
            mean[row, d] = mean[above, d] + share * (s.mean[other, d] - mean[above, d])
        variance[row, 0] = share * q


@called
def _cavity_many(s: Any, mean: Any, variance: Any, above: Any, v: Any, row: Any) -> Any:
    """`cavity` among many siblings: all minus own, or the sum of the others where own is more than half of all."""
    u = s.parent[v]
    columns, parts = mean.shape[1], variance.shape[1]
    most = False
    for d in range(parts):
        own = 1.0 / (s.variance[v, d] + s.length[v])
        total = 1.0 / (variance[above, d] + s.length[u]) + 1.0 / s.variance[u, d]
        variance[row, d] = total - own
        most = most or own > 0.5 * total
    if most:
        for d in range(parts):
            variance[row, d] = 1.0 / (variance[above, d] + s.length[u])
        for d in range(columns):
            mean[row, d] = mean[above, d] / (variance[above, d % parts] + s.length[u])
        w = s.child[u]
        while w >= 0:
            if w != v:
                for d in range(parts):
                    variance[row, d] += 1.0 / (s.variance[w, d] + s.length[w])
                for d in range(columns):
                    mean[row, d] += s.mean[w, d] / (s.variance[w, d % parts] + s.length[w])
            w = s.next[w]
    else:
        for d in range(columns):
            k = d % parts
            mean[row, d] = (
                mean[above, d] / (variance[above, k] + s.length[u])
                + s.mean[u, d] / s.variance[u, k]
                - s.mean[v, d] / (s.variance[v, k] + s.length[v])
            )
    for d in range(parts):
        variance[row, d] = 1.0 / variance[row, d]
    for d in range(columns):
        mean[row, d] *= variance[row, d % parts]
