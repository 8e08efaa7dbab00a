"""A diffusion tree as a model: locations that diffuse along a tree given as data, and any likelihood at its leaves."""

from collections.abc import Callable

import cavity as cv  # pyright: ignore[reportMissingImports]

from ..compiler.language.nodes import Expr, Plate
from ..factors.calls import call_checked

Likelihood = Callable[[cv.Model, Expr], object]  # declares what is observed, given the locations (leaf, column)


def gaussian_leaves(noise: float | None = None) -> Likelihood:
    """y ~ N(location, noise), (leaf, column); without a noise its inverse `noise_precision` ~ Gamma(1, 1) is learned.

    For leaves without noise give one that is small against all branches, such as 1e-6 of the diffusion variance.
    """

    def likelihood(m: cv.Model, location: Expr) -> None:
        precision = m.random("noise_precision", cv.gamma(shape=1.0, rate=1.0)) if noise is None else 1.0 / noise
        m.random("y", cv.gaussian(location, precision=precision))

    return likelihood


def probit_leaves(m: cv.Model, location: Expr) -> None:
    """y ~ Bernoulli(Phi(location)), (leaf, column)."""
    m.random("y", cv.bernoulli(cv.probit(location)))


def mixed_leaves(noise: float | None = None) -> Likelihood:
    """`y` (leaf, number) as `gaussian_leaves` and `answer` (leaf, question) as probit: each has columns of its own.

    Inputs: `numbers` (number) and `questions` (question), which columns of the tree these are.
    """

    def likelihood(m: cv.Model, location: Expr) -> None:
        column = next(plate for plate in location.plates if plate.name == "column")
        number, question = m.plate("number"), m.plate("question")
        gaussian_leaves(noise)(m, location[m.input("numbers", cv.index(column), plates=number)])
        answers = location[m.input("questions", cv.index(column), plates=question)]
        m.random("answer", cv.bernoulli(cv.probit(answers)))

    return likelihood


@call_checked
def diffusion_tree(
    columns: int,
    likelihood: Likelihood | None = None,
    variance: str = "given",
    rate: str = "given",
    tree: str = "given",
) -> cv.Model:
    """location_v ~ N(location_parent, variance length_v) in each column, from 0 at the origin, and any likelihood.

    The divergence times are data as well: `waiting_v ~ Exponential(rate)`, the integral of the divergence function
    over the branch that ends at branch point v times H(m - 1) for its m leaves, is the density of the times given the
    structure, up to factors that do not depend on any random variable (`cavity.models.trees.inputs.log_constant`).
    So the posterior of the rate, a factor of the divergence function that `waiting` was made with (c itself where that
    has c = 1), needs no more than a gamma factor.

    `columns` is the number of coordinates of a location. `likelihood(m, location)` declares what is observed at the
    leaves, given their locations (leaf, column): `gaussian_leaves(noise)`, by default with a learned noise,
    `probit_leaves`, `mixed_leaves(noise)`, or another, such as `lambda m, x: m.random("y", cv.poisson(cv.exp(x)))`.
    `variance` is "given", an input (column), or learned: "shared" or "per column" give its inverse `precision` the
    prior Gamma(1, 1); locations are then exact given the mean of the precision (structured VMP). `rate` is "given",
    which is 1, or "learned" with the prior Gamma(1, 1).

    Inputs, which `cavity.models.trees.inputs.inputs` makes of a tree: `parent` and `length` (node), where the first
    branch point points to itself, `first`, its own time from the origin, and `tip` (leaf), the leaves' nodes. Random:
    `location` (node, column), `waiting` (branch point), which is data too, and what the likelihood declares. Another
    tree with as many nodes recompiles nothing.

    `tree="moved"` is for `cv.sample` with `cavity.models.trees.subtree_moves()`, which draw the tree and have the prior
    of its structure. Leaves are then variables of their own, `tip` (leaf, column), so that the `location` (branch
    point, column) can be integrated out under any likelihood. The inputs `parent`, `length`, `first`, `above` (leaf),
    the branch point above it, and `left` (leaf), the time from there to 1, are made by the moves, and so is `waiting`.

    Returns the model. Raises ModelError for another word.
    Source: knowles2015pitman, knowles2011trees.
    """
    if variance not in ("given", "shared", "per column") or rate not in ("given", "learned"):
        raise cv.ModelError(
            f'variance= is "given", "shared" or "per column", rate= "given" or "learned"; found {variance!r}, {rate!r}.'
        )
    if tree not in ("given", "moved"):
        raise cv.ModelError(f'tree= is "given" or "moved"; found {tree!r}.')
    make = _moved if tree == "moved" else _given
    return make(columns, likelihood or gaussian_leaves(), variance, rate)


def _given(columns: int, likelihood: Likelihood, variance: str, rate: str) -> cv.Model:
    """The model of a tree that is data."""
    m = cv.Model("diffusion tree")
    node, leaf, point, column = m.plate("node"), m.plate("leaf"), m.plate("branch point"), m.plate("column", columns)
    location, _ = _diffused(m, node, column, variance)
    tip = m.input("tip", cv.index(node), plates=leaf)
    likelihood(m, location[tip])
    _waiting(m, point, rate)
    return m


def _waiting(m: cv.Model, point: Plate, rate: str) -> None:
    """The density of the divergence times, given the structure."""
    speed = 1.0 if rate == "given" else m.random("rate", cv.gamma(shape=1.0, rate=1.0))
    m.random("waiting", cv.gamma(shape=1.0, rate=speed), plates=point)


def _diffused(m: cv.Model, node: Plate, column: Plate, variance: str) -> tuple[Expr, Expr]:
    """Locations that diffuse along a tree over the plate `node`, which inputs are, and one over the variance."""
    parent = m.input("parent", cv.index(node), plates=node)
    length, first = m.input("length", cv.positive, plates=node), m.input("first", cv.positive)
    precision = _precision(m, column, variance)
    location = m.tree(
        "location",
        over=node,
        parent=parent,
        root=cv.gaussian(0.0, precision=precision / first),
        then=lambda above: cv.gaussian(above, precision=precision / length),
        plates=column,
    )
    return location, precision


def _precision(m: cv.Model, column: Plate, variance: str) -> Expr:
    """One over the diffusion variance."""
    if variance == "given":
        return 1.0 / m.input("variance", cv.positive, plates=column)
    return m.random("precision", cv.gamma(shape=1.0, rate=1.0), plates=column if variance == "per column" else ())


def _moved(columns: int, likelihood: Likelihood, variance: str, rate: str) -> cv.Model:
    """The model of a tree that moves draw: locations of branch points, and leaves below them."""
    m = cv.Model("diffusion tree that is moved")
    point, leaf, column = m.plate("branch point"), m.plate("leaf"), m.plate("column", columns)
    location, precision = _diffused(m, point, column, variance)
    above, left = m.input("above", cv.index(point), plates=leaf), m.input("left", cv.positive, plates=leaf)
    tip = m.random("tip", cv.gaussian(location[above], precision=precision / left))
    likelihood(m, tip)
    _waiting(m, point, rate)
    return m


def diffusion_times(
    columns: int, noise: float, variance: tuple[float, float] = (1.0, 1.0), rate: tuple[float, float] = (1.0, 1.0)
) -> cv.Model:
    """Divergence times, diffusion variance and rate of a tree whose structure is data, with Gaussian leaves.

    The depths -log(1 - t) of branch points grow from parent to child by independent gap_v ~ Exponential(rate share_v),
    share_v = H(m - 1) for the m leaves below v. Along a branch passes the time 1 - t_parent - (1 - t). With
    `cv.laplace_approximation(model, data, integrate=["location"])` locations are integrated out exactly.

    Args:
        columns: of the data.
        noise: variance of the noise at the leaves, zero or more.
        variance: mean and variance of the gamma prior of the diffusion `variance`.
        rate: Gamma prior (shape, rate) of the `rate` c of the divergence function c / (1 - t).

    Returns:
        The model. Inputs, which `cavity.models.trees.inputs.structure` makes of a tree: `parent` and `share` (branch
        point), the first one `top`, `above` (leaf), and `descendant` and `ancestor`: pairs of a branch point with
        itself and all above. Random: `rate`, `variance`, `gap`, `location` (branch point, column), `y` (leaf, column),
        NaN where missing. Named: `time` and `left`, 1 - time.

    Source: neal2003density, knowles2011trees.
    """
    m = cv.Model("divergence times")
    point, leaf, pair, column = m.plate("branch point"), m.plate("leaf"), m.plate("pair"), m.plate("column", columns)
    parent, above = (m.input(n, cv.index(point), plates=p) for n, p in (("parent", point), ("above", leaf)))
    descendant, ancestor = (m.input(name, cv.index(point), plates=pair) for name in ("descendant", "ancestor"))
    c = m.random("rate", cv.gamma(shape=rate[0], rate=rate[1]))
    diffusion = m.random("variance", cv.gamma(mean=variance[0], variance=variance[1]))
    gap = m.random("gap", cv.exponential(c * m.input("share", cv.positive, plates=point)))
    left = m.let("left", cv.exp(-cv.sum(gap[ancestor], by=descendant)))
    m.let("time", 1 - left)
    step = diffusion * left * (cv.exp(gap) - 1)
    location = m.tree(
        "location",
        over=point,
        parent=parent,
        root=cv.gaussian(0.0, variance=step[m.input("top", cv.index(point))]),
        then=lambda before: cv.gaussian(before, variance=step),
        plates=column,
    )
    m.random("y", cv.gaussian(location[above], variance=diffusion * left[above] + noise))
    return m
