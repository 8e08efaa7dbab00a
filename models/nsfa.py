"""Sparse factor models: nonparametric sparse factor analysis, cut off at a number of factors, and its family."""

import numpy as np

import cavity as cv  # pyright: ignore[reportMissingImports]

from ..compiler.language.nodes import Expr
from ..factors.calls import call_checked


@call_checked
def nsfa(
    factors: int,
    sparsity: str = "spike",
    slab: str = "per factor",
    noise: str = "per row",
    mass: float | str = 1.0,
) -> cv.Model:
    """y_dn ~ N(sum_k loading_dk score_nk, 1 / noise_d) with score_n ~ N(0, I): centre the rows of the data.

    `sparsity` of the loadings is "spike": loading_dk = 0, or with probability activity_k from the slab N(0, 1 /
    precision_k), and activity_k ~ Beta(mass / factors, 1), which is the Indian buffet process of this `mass` as
    `factors` grows; "known": the probabilities are the input `prior` (row, factor), where 0 and 1 are a mask; "none":
    all from the slab. `slab` precisions are "per factor", "shared" or of each "element", which makes the slab a
    Student-t; `noise` precisions are "per row" or "shared". All of them are Gamma(1, 1), and so is a "learned" `mass`.

    So sparsity "none" is factor analysis with automatic relevance (per factor), with a shared slab factor analysis,
    with a shared noise as well probabilistic principal components, and with a slab by element Fokoue's model; "spike"
    is sparse factor analysis, which switches off the factors that the data do not need (`rows_in_use`).

    Random: `loading` (row, factor), `score` (sample, factor), `precision`, `activity` (factor) under "spike", `noise`,
    `mass` where it is learned, and `y` (row, sample), which is usually observed, NaN where it is missing: its marginal
    is the prediction there. `mean` is the inner product. Infer with method "vmp"; `restarts=` turn the principal
    components that the loadings begin with otherwise. Returns the model. Raises ModelError for another word.
    Source: knowles2011nonparametric, titsias2011spike, tipping1999probabilistic, fokoue2004stochastic.
    """
    m = cv.Model("nsfa")
    row, sample, factor = m.plate("row"), m.plate("sample"), m.plate("factor", factors)
    slabs, noises = {"per factor": factor, "shared": (), "element": (row, factor)}, {"per row": row, "shared": ()}
    if slab not in slabs or noise not in noises or sparsity not in ("spike", "known", "none"):
        raise cv.ModelError(
            'sparsity= is "spike", "known" or "none", slab= "per factor", "shared" or "element", noise= "per row" or '
            f'"shared"; found {sparsity!r}, {slab!r}, {noise!r}.'
        )
    if mass != "learned" and (isinstance(mass, str) or not 0.0 < mass < np.inf):
        raise cv.ModelError(f'mass= is a positive number or "learned"; found {mass!r}.')
    unit = cv.gamma(shape=1.0, rate=1.0)
    precision = m.random("precision", unit, plates=slabs[slab])
    vectors = sparsity == "none" and slab == "shared"  # whose beliefs are joint over factors
    if vectors:
        term = cv.vector_gaussian(np.zeros(factors), precision=precision)
    elif sparsity == "none":
        term = cv.gaussian(0.0, precision=precision)
    elif sparsity == "known":
        term = cv.spike_and_slab(m.input("prior", cv.unit, plates=(row, factor)), precision=precision)
    else:
        total: Expr | float = m.random("mass", unit) if mass == "learned" else mass
        activity = m.random("activity", cv.beta(total / factors, 1.0), plates=factor)
        term = cv.spike_and_slab(activity, precision=precision)
    loading = m.random("loading", term, plates=row if vectors else (row, factor))
    score = m.random("score", cv.vector_gaussian(np.zeros(factors), covariance=np.eye(factors)), plates=sample)
    mean = m.let("mean", cv.dot(loading if vectors else cv.stack(loading, over=factor), score))
    m.random("y", cv.gaussian(mean, precision=m.random("noise", unit, plates=noises[noise])), plates=(row, sample))
    return m


def rows_in_use(posterior: cv.Posterior) -> np.ndarray:
    """How many rows load on each factor, in expectation; below a half the factor is not needed."""
    return posterior["loading"].probability.sum(axis=0)
