"""What the kernels of sparse factor models work on: arrays only, padded in the number of factors.

y = G x + noise with D rows and N samples. Arrays hold factors first, so that everything of one factor is contiguous:
`loading[k]` is column k of G. Unused places (k >= count) hold zeros; factors in use stand first, known ones before all.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Switches(NamedTuple):
    """What decides which code is compiled; everything else is data.

    Attributes:
        sparsity: "buffet" (Indian buffet), "finite" (beta-Bernoulli), "hierarchical" (as BFRM) or "none" (dense).
        slab: "gaussian", or one precision for every loading: "student_t", "laplace" or "horseshoe".
        precision: "factor", "shared" or "fixed": whose slab precision is sampled.
        noise: "row", "shared" or "fixed".
        learn: which of mass, concentration, precision_rate and noise_rate are sampled, sorted.
        known: number of factors with given prior probabilities of their loadings.
        rows: in how many rows, chosen at random, births and deaths are proposed in a parallel sweep.
        most: the largest number of factors of its own that a row is proposed to have.
        scores: "gaussian", independent of each other, or "dirichlet".
        shared: how often a sweep proposes that a factor of several rows comes or goes.
    """

    sparsity: str = "buffet"
    slab: str = "gaussian"
    precision: str = "factor"
    noise: str = "row"
    learn: tuple[str, ...] = ("mass",)
    known: int = 0
    rows: int = 1
    most: int = 3
    scores: str = "gaussian"
    shared: int = 0


class Numbers(NamedTuple):
    """Numbers that no compilation depends on. Gamma priors are (shape, rate).

    Attributes:
        mass_prior, concentration_prior, precision_prior, precision_rate_prior, noise_prior, noise_rate_prior: (2,).
            The rates of `precision_prior` and `noise_prior` are where precision_rate and noise_rate start, or stay.
            With precision "fixed" the mean of `precision_prior`, shape / rate, is the slab precision.
        element: (2,) shape and rate of the gamma prior of element precisions under "student_t".
        hierarchy: (4,) a, m, s, r of "hierarchical": an entry is open with probability rho_k ~ Beta(s r, s (1 - r)),
            and an open one active with probability ~ Beta(a m, a (1 - m)).
        multiplier, spike: () of the proposal (1 - spike) Poisson(multiplier * rate) + spike [one factor].
        score_mass: () of the Dirichlet process of each factor's scores, where there is one.
    """

    mass_prior: Any
    concentration_prior: Any
    precision_prior: Any
    precision_rate_prior: Any
    noise_prior: Any
    noise_rate_prior: Any
    element: Any
    hierarchy: Any
    multiplier: Any
    spike: Any
    score_mass: Any = 1.0


class Observed(NamedTuple):
    """The data.

    Attributes:
        values: (D, N), 0 where missing.
        row, sample: (M,) places of the missing entries.
        log_odds: (known, D) prior log odds of the loadings of known factors, possibly infinite.
    """

    values: Any
    row: Any
    sample: Any
    log_odds: Any


class State(NamedTuple):
    """One point of a chain, padded to P factors.

    Attributes:
        loading: (P, D); active where not zero.
        factor: (P, N).
        count: () factors in use.
        precision: (P,) slab precisions, one value repeated where shared; places without a factor hold 1.
        element: (P, D) what multiplies the slab precision of each loading; (0, 0) with Gaussian slabs.
        openness: (P,) rho_k of "hierarchical"; (0,) elsewhere.
        noise: (D,) noise precisions, one value repeated where shared.
        mass, concentration, precision_rate, noise_rate: ().
        missing: (M,) drawn values of the missing entries.
    """

    loading: Any
    factor: Any
    count: Any
    precision: Any
    element: Any
    openness: Any
    noise: Any
    mass: Any
    concentration: Any
    precision_rate: Any
    noise_rate: Any
    missing: Any


class Outcome(NamedTuple):
    """A sweep's result.

    Attributes:
        state: the new state; meaningless where the sweep did not fit.
        fits: () whether P sufficed. Where not, the caller pads the OLD state and repeats the sweep with the same key:
            draws belong to (key, factor) and not to P, so that padding changes nothing but rounding, and no outcome is
            favoured.
        accepted, proposed: () births and deaths in this sweep: moves that change something, or would.
    """

    state: State
    fits: Any
    accepted: Any
    proposed: Any
