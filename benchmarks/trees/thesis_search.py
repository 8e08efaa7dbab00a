"""The search over binary trees that the papers describe, on our kernels: what our own search is compared with.

A subtree is detached, attached at the middle of each branch in turn, and inference is run to convergence on the three
best of these; the best of the three is kept if it improves on the tree. Inference over divergence times is either
message passing in expectation maximisation, or L-BFGS on the exact evidence, which the papers do not have.

Only the kernels' time is charged (sweeps, gradients, scores, the M step's function), so that the optimiser's and
Python's overhead does not count against this search.

Source: knowles2011trees, knowles2012thesis.
"""

import contextlib
import time

import numba
import numpy as np
from scipy import optimize

from cavity.models.trees.likelihoods.times import branch_points, optimise_times
from cavity.models.trees.shapes.arrays import FREE, ORIGIN, Arrays, Subtree

MIDDLE = np.array([0.5])
CANDIDATES = 3
TOLERANCE, EM_TOLERANCE = 1e-3, 0.05  # nats gained by an iteration; EM gains little for very long
WALL = 1e8  # where times are out of order: the line search of L-BFGS needs a number to come back from


class Charged:
    """A back end that adds up the CPU time of its calls."""

    def __init__(self, engine):
        self.engine, self.seconds = engine, 0.0

    @contextlib.contextmanager
    def clock(self):
        begun = time.process_time()
        yield
        self.seconds += time.process_time() - begun

    def __getattr__(self, name):
        function = getattr(self.engine, name)

        def charged(*arguments):
            with self.clock():
                return function(*arguments)

        return charged


def below(arrays, node):
    """Rows of the subtree at a node."""
    rows, waiting = [], np.array([node])
    while len(waiting):
        rows.append(waiting)
        waiting = np.flatnonzero(np.isin(arrays.parent, waiting))
    return np.concatenate(rows)


def detached(arrays, node):
    """The tree without a subtree, whose rows are then free, and the subtree's rows."""
    parent, depth, count, degree = (np.array(part) for part in arrays)
    rows, point, size = below(arrays, node), parent[node], count[node]
    sibling = np.flatnonzero((parent == point) & (np.arange(len(parent)) != node))[0]
    parent[sibling] = parent[point]
    gone = np.append(rows, point)
    above = parent[point]
    while above != ORIGIN:
        count[above] -= size
        above = parent[above]
    parent[gone], depth[gone], count[gone], degree[gone] = FREE, -1.0, 0, 0
    return Arrays(parent, depth, count, degree), rows


def attached(rest, whole, node, rows, branch, depth):
    """The tree with a subtree, whose inside is as in `whole`, on a branch at a depth."""
    parts = [np.array(part) for part in rest]
    for part, before in zip(parts, whole, strict=True):
        part[rows] = before[rows]
    parent, depths, count, degree = parts
    n = len(parent) // 2
    point = n + np.flatnonzero(parent[n:-1] == FREE)[0]
    parent[point], depths[point], degree[point], count[point] = parent[branch], depth, 2, count[branch]
    parent[branch] = parent[node] = point
    above = point
    while above != ORIGIN:
        count[above] += count[node]
        above = parent[above]
    return Arrays(parent, depths, count, degree)


class ThesisSearch:
    """One run.

    Args:
        leaves, tables, engine: as in `cavity.models.trees.backend`.
        seed: of the random choices.
        inference: "direct" (L-BFGS on the evidence) or "em".
    """

    def __init__(self, leaves, tables, engine, seed, inference="direct"):
        self.leaves, self.tables, self.engine = leaves, tables, Charged(engine)
        self.random = np.random.default_rng(seed)
        self.infer = {"direct": self.direct, "em": self.em}[inference]
        self.trace = []

    def build(self):
        """Leaves added one by one, in a random order, each at the best of three places."""
        n = len(self.leaves.mean)
        order = self.random.permutation(n)
        arrays = self.pair(n, *order[:2])
        arrays, value = self.infer(arrays)
        for leaf in order[2:]:
            alone = Arrays(*(np.array(part) for part in arrays))
            for part, content in zip(alone, (ORIGIN, np.inf, 1, 0), strict=True):
                part[leaf] = content
            arrays, value = self.best_of(arrays, alone, leaf, np.array([leaf]))
        self.note(value)
        return arrays, value

    def pair(self, n, first, second):
        """The tree of two leaves, in arrays for n."""
        rows = 2 * n
        parent, depth = np.full(rows, FREE, np.int32), np.full(rows, -1.0)
        count, degree = np.zeros(rows, np.int32), np.zeros(rows, np.int32)
        parent[[first, second, n, -1]] = n, n, rows - 1, ORIGIN
        depth[[first, second, n, -1]] = np.inf, np.inf, np.log(2.0), 0.0
        count[[first, second, n, -1]], degree[[n, -1]] = (1, 1, 2, 2), (2, 1)
        return Arrays(parent, depth, count, degree)

    def search(self, arrays, value, seconds, move="subtrees", steps=None):
        """Steps until the kernels have had so many seconds; `move` is "subtrees", "leaves" or "random"."""
        done = 0
        while self.engine.seconds < seconds and (steps is None or done < steps):
            node = self.choose(arrays, leaves_only=move == "leaves")
            rest, rows = detached(arrays, node)
            if move == "random":
                found, trial = self.at_random(rest, arrays, node, rows)
            else:
                found, trial = self.best_of(rest, arrays, node, rows)
            if trial > value:
                arrays, value = found, trial
            self.note(value)
            done += 1
        return arrays, value

    def choose(self, arrays, leaves_only):
        n, parent = len(arrays.parent) // 2, arrays.parent
        if leaves_only:
            return self.random.integers(n)
        rows = np.arange(2 * n - 1)
        return self.random.choice(rows[(parent[rows] != FREE) & (parent[rows] != 2 * n - 1)])

    def best_of(self, rest, whole, node, rows):
        """The subtree tried in the middle of every branch, and inference on the best three."""
        messages = self.engine.sweep(rest, self.leaves)
        if len(rows) == 1:
            mean, variance = self.leaves.mean[node], self.leaves.variance[node]
        else:
            inside = self.engine.sweep(whole, self.leaves)
            mean, variance = inside.up_mean[node], inside.up_variance[node]
        piece = Subtree(mean, variance, whole.depth[node], whole.count[node])
        score = self.engine.score(rest, messages, piece, self.tables, MIDDLE)[0][:, 0]
        places = np.argsort(-score)[:CANDIDATES]
        trials = [self.infer(self.middle(rest, whole, node, rows, b)) for b in places if np.isfinite(score[b])]
        return max(trials, key=lambda trial: trial[1])

    def at_random(self, rest, whole, node, rows):
        used = np.flatnonzero((rest.parent != FREE) & (rest.parent != ORIGIN))
        early = used[rest.depth[rest.parent[used]] < whole.depth[node]]
        return self.infer(self.middle(rest, whole, node, rows, self.random.choice(early)))

    def middle(self, rest, whole, node, rows, branch):
        """The subtree in the middle, in time, of what it can reach of a branch."""
        start, end = rest.depth[rest.parent[branch]], min(rest.depth[branch], whole.depth[node])
        depth = -np.log(0.5 * (np.exp(-start) + np.exp(-end)))
        return attached(rest, whole, node, rows, branch, depth)

    def direct(self, arrays):
        found = optimise_times(arrays, self.leaves, self.tables, backend=self.engine, tolerance=TOLERANCE)
        return found.arrays, found.log_joint

    def em(self, arrays, iterations=100):
        """Expected squared increments by a sweep, then times by L-BFGS on their logits, until little is gained."""
        value = self.engine.joint_gradient(arrays, self.leaves, self.tables)[0]
        for _ in range(iterations):
            trial = self.maximised(arrays)
            found = self.engine.joint_gradient(trial, self.leaves, self.tables)[0]
            if not found > value:
                break
            arrays, gain, value = trial, found - value, found
            if gain < EM_TOLERANCE:
                break
        return arrays, value

    def maximised(self, arrays):
        """One iteration of expectation maximisation; depths are the measure, as everywhere here."""
        parent, depth, count, _ = arrays
        messages = self.engine.sweep(arrays, self.leaves)
        points = branch_points(arrays)
        used = np.flatnonzero((parent != FREE) & (parent != ORIGIN))
        with self.engine.clock():
            squares = expected_squares(arrays, messages, used)
        columns = self.leaves.mean.shape[1]
        rate = self.tables.coefficients[1]
        total = rate * self.tables.harmonic[count - 1] * (count > 1)

        def loss(logit):
            with self.engine.clock():
                return expected_loss(logit, points, used, parent[used], squares, total, depth, columns)

        start = np.log(np.expm1(depth[points]))
        found = optimize.minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 20})
        result = np.array(depth)
        result[points] = np.logaddexp(0.0, found.x)
        return arrays._replace(depth=result)

    def note(self, value):
        self.trace.append((self.engine.seconds, value))


def expected_squares(arrays, messages, used):
    """Half the expected squared length of each branch, all columns together."""
    above = arrays.parent[used]
    length = np.exp(-arrays.depth[above]) - np.exp(-arrays.depth[used])
    noise = messages.up_variance[used, 0] + messages.down_variance[used, 0]
    share = length / (length + noise)
    distance = ((messages.up_mean[used] - messages.down_mean[used]) ** 2).sum(axis=1)
    return 0.5 * (share**2 * distance + messages.up_mean.shape[1] * share * noise)


@numba.njit(cache=True)
def expected_loss(logit, points, used, above, squares, total, depth, columns):
    """What the M step minimises, `sum total (depth - depth above) + sum D log(length) / 2 + squares / length`, and its
    gradient in the logits of the times of branch points."""
    rows = len(depth)
    late, slope = np.ones(rows), np.zeros(rows)  # late: 1 - time; slope: derivatives in times
    late[used] = 0.0
    for i in range(len(points)):
        late[points[i]] = 1.0 / (1.0 + np.exp(logit[i]))
    value = 0.0
    for i in range(len(used)):
        v, u = used[i], above[i]
        length = late[u] - late[v]
        if length < 1e-100 or (late[v] < 1e-100 and total[v] > 0.0):
            return WALL, np.zeros(len(points))
        pull = 0.5 * columns / length - squares[i] / length**2
        value += 0.5 * columns * np.log(length) + squares[i] / length
        slope[v] += pull
        slope[u] -= pull
        if total[v] > 0.0:
            value += total[v] * (np.log(late[u]) - np.log(late[v]))
            slope[v] += total[v] / late[v]
            slope[u] -= total[v] / late[u]
    gradient = np.empty(len(points))
    for i in range(len(points)):
        gradient[i] = slope[points[i]] * late[points[i]] * (1.0 - late[points[i]])
    return value, gradient
