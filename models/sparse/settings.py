"""Which sparse factor model is sampled, with which priors and by which moves."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from ...engine.support.user_numbers import number, two_positive
from ...factors.errors import ModelError

SPARSITIES = ("buffet", "finite", "hierarchical", "none")
SCORES = ("gaussian", "dirichlet")
SLABS = ("gaussian", "student_t", "laplace", "horseshoe")
LEARNABLE = ("mass", "concentration", "precision_rate", "noise_rate")


@dataclasses.dataclass(frozen=True)
class Priors:
    """Gamma priors (shape, rate) of what is sampled.

    Args:
        mass, concentration: of the Indian buffet process; `mass` also of the finite beta-Bernoulli prior.
        precision: of slab precisions; its rate is where precision_rate starts, or stays.
        precision_rate: of the rate of `precision`, by which factors share power.
        noise: of noise precisions; its rate is where noise_rate starts, or stays.
        noise_rate: of the rate of `noise`, by which rows share noise power.
    """

    mass: tuple[float, float] = (1.0, 1.0)
    concentration: tuple[float, float] = (1.0, 1.0)
    precision: tuple[float, float] = (1.0, 1.0)
    precision_rate: tuple[float, float] = (1.0, 1.0)
    noise: tuple[float, float] = (1.0, 1.0)
    noise_rate: tuple[float, float] = (1.0, 1.0)

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            pair = getattr(self, field.name)
            if not two_positive(pair):
                raise ModelError(
                    f"The prior of {field.name} is Gamma(shape, rate), two positive numbers; found {pair!r}."
                )


@dataclasses.dataclass(frozen=True)
class Settings:
    """y_n = G x_n + noise, x_n ~ N(0, I): the prior of the loadings G, what is sampled, and how.

    Args:
        sparsity: which loadings are zero. "buffet": an Indian buffet process over rows, any number of factors;
            "finite": activity_k ~ Beta(mass / factors, 1); "hierarchical": an entry is open with probability
            rho_k ~ Beta(s r, s (1 - r)) and then active with probability ~ Beta(a m, a (1 - m)); "none": no loading is.
        factors: how many, where the number is fixed; with "buffet" None.
        slab: of active loadings: "gaussian" N(0, 1 / precision_k), or heavier tails by a precision for every loading,
            precision_k times an element: "student_t" (element ~ Gamma(`element`)), "laplace" (1 / element ~
            Exponential(1/2)), "horseshoe" (element^(-1/2) ~ half-Cauchy(1)).
        precision: "factor", "shared" or a positive number that is kept: slab precisions.
        noise: "row", "shared" or a positive number that is kept: noise precisions.
        learn: which of mass, concentration, precision_rate and noise_rate are sampled.
        mass, concentration: of the Indian buffet process, where they start or stay; concentration 1 is the
            one-parameter process.
        priors: of what is sampled.
        element: (shape, rate) of the gamma prior of Student-t elements.
        hierarchy: (a, m, s, r) of "hierarchical"; None: (10, .75, rows, 5 / rows).
        known: (rows, factors) prior probabilities of loadings of factors that are known beforehand, 0 and 1 allowed, or
            None. They come first and always stay; with fixed numbers of factors they are among them.
        multiplier, spike: births and deaths propose (1 - spike) Poisson(multiplier * rate) + spike [one factor].
        births: rows that propose births and deaths in a sweep, chosen at random; None: at most 256.
        most: the largest number of factors of its own proposed for a row.
        shared: how often a sweep proposes that a factor of several rows comes or goes as a whole; with "buffet" and
            Gaussian slabs. Some 20 find factors that otherwise take thousands of sweeps, from any start.
        scores: "gaussian", x_n ~ N(0, I); or "dirichlet", for fixed numbers of factors: scores of each factor have a
            law of their own, drawn from a Dirichlet process about N(0, 1), so that some samples agree in them.
        score_mass: of that process: the larger it is, the fewer agree.
        start: "components": from the principal components; "prior": a draw of it; or "empty".

    Raises:
        ModelError: values out of range, or that contradict each other.
    """

    sparsity: str = "buffet"
    factors: int | None = None
    slab: str = "gaussian"
    precision: str | float = "factor"
    noise: str | float = "row"
    learn: frozenset[str] = frozenset({"mass"})
    mass: float = 1.0
    concentration: float = 1.0
    priors: Priors = dataclasses.field(default_factory=Priors)
    element: tuple[float, float] = (1.0, 1.0)
    hierarchy: tuple[float, float, float, float] | None = None
    known: Any = dataclasses.field(default=None, compare=False)
    multiplier: float = 1.0
    spike: float = 0.0
    births: int | None = None
    most: int = 3
    shared: int = 0
    scores: str = "gaussian"
    score_mass: float = 1.0
    start: str = "components"

    def __post_init__(self) -> None:
        object.__setattr__(self, "learn", _names(self.learn))
        _one_of("sparsity", self.sparsity, SPARSITIES)
        _one_of("slab", self.slab, SLABS)
        _one_of("scores", self.scores, SCORES)
        _one_of("start", self.start, ("components", "prior", "empty"))
        for name, words in (("precision", ("factor", "shared")), ("noise", ("row", "shared"))):
            value = getattr(self, name)
            if isinstance(value, str) and value in words:
                continue
            if not 0.0 < number(value) < np.inf:
                raise ModelError(f"{name}= is {words[0]!r}, {words[1]!r} or a positive number; found {value!r}.")
            object.__setattr__(self, name, float(value))
            if f"{name}_rate" in self.learn:
                raise ModelError(
                    f"{name}_rate, the rate of the prior of {name}, cannot be learned where {name}={value!r} is kept. "
                    f"Leave it out of learn=, or take {name}={words[0]!r}."
                )
        if unknown := sorted(map(str, self.learn - set(LEARNABLE))):
            raise ModelError(f"What can be learned is {', '.join(LEARNABLE)}; asked: {', '.join(unknown)}.")
        if not isinstance(self.priors, Priors):
            raise ModelError(f"priors= is a Priors, such as Priors(noise=(1.0, 1.0)); found {self.priors!r}.")
        self._check_numbers()
        self._check_number_of_factors()
        if self.known is not None:
            object.__setattr__(self, "known", _probabilities(self.known))

    def _check_numbers(self) -> None:
        positive = {"mass": self.mass, "concentration": self.concentration, "multiplier": self.multiplier}
        positive |= {"score_mass": self.score_mass}
        for name, value in positive.items():
            if not 0.0 < number(value) < np.inf:
                raise ModelError(f"{name}= is a positive number; found {value!r}.")
            object.__setattr__(self, name, float(value))
        if not 0.0 <= number(self.spike) < 1.0:
            raise ModelError(f"spike= is a probability below 1; found {self.spike!r}.")
        if not two_positive(self.element):
            raise ModelError(f"element= is two positive numbers, shape and rate; found {self.element!r}.")
        whole = (("births", self.births, 1), ("most", self.most, 1), ("shared", self.shared, 0))
        for name, value, least in whole:
            if value is None and name == "births":
                continue
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
                raise ModelError(f"{name}= is a whole number of at least {least}; found {value!r}.")
        if self.shared and (self.sparsity != "buffet" or self.slab != "gaussian"):
            raise ModelError(
                f"shared={self.shared} asks for births and deaths of factors with Gaussian slabs under an Indian "
                f"buffet process; found slab={self.slab!r} and sparsity={self.sparsity!r}. Leave shared= out."
            )
        if self.hierarchy is not None:
            a, m, s, r = _four(self.hierarchy)
            if not (a > 0.0 and 0.0 < m < 1.0 and s > 0.0 and 0.0 < r < 1.0):
                raise ModelError(
                    f"hierarchy= is (a, m, s, r) with a, s > 0 and m, r between 0 and 1; found {self.hierarchy!r}."
                )

    def _check_number_of_factors(self) -> None:
        if self.sparsity == "buffet":
            if self.scores != "gaussian":
                raise ModelError(
                    f"scores={self.scores!r} is for fixed numbers of factors: births of an Indian buffet process "
                    "integrate Gaussian scores. Take sparsity='finite' or 'hierarchical' with factors=."
                )
            if self.factors is not None:
                raise ModelError(
                    f"factors={self.factors!r} was given, but an Indian buffet process learns their number. Leave it "
                    "out, or take sparsity='finite'."
                )
            return
        if isinstance(self.factors, bool) or not isinstance(self.factors, (int, np.integer)) or self.factors < 1:
            raise ModelError(
                f"sparsity={self.sparsity!r} needs factors=, a whole number of at least 1; found {self.factors!r}."
            )
        if self.sparsity in ("hierarchical", "none") and self.learn & {"mass", "concentration"}:
            object.__setattr__(self, "learn", self.learn - {"mass", "concentration"})
        if "concentration" in self.learn or (self.sparsity == "finite" and self.concentration != 1.0):
            raise ModelError("A concentration belongs to sparsity='buffet'; leave it out.")


def family(name: str, factors: int | None = None, **changes: Any) -> Settings:
    """The settings of a model of the literature.

    "nsfa" (Indian buffet), "nsfa_shared_noise" (with a learned rate of the noise's prior), "sfa" (finite sparse);
    dense: "fa" (one slab precision), "afa" (a precision per factor, automatic relevance determination), "ppca" (unit
    slabs, one noise), "fokoue" (Student-t loadings: element precisions ~ Gamma(1, 1e-4)); "bfrm" (hierarchical).

    Args:
        name: one of these.
        factors: how many, for all but nsfa.
        changes: any argument of `Settings` in place of the model's own.

    Raises:
        ModelError: an unknown name, or changes that are no arguments of `Settings`.

    Source: knowles2011nonparametric, knowles2012thesis.
    """
    own: dict[str, Any] = {
        "nsfa": {},
        "nsfa_shared_noise": {"learn": {"mass", "noise_rate"}},
        "sfa": {"sparsity": "finite"},
        "fa": {"sparsity": "none", "precision": "shared"},
        "afa": {"sparsity": "none", "precision": "factor"},
        "ppca": {"sparsity": "none", "precision": 1.0, "noise": "shared"},
        "fokoue": {"sparsity": "none", "precision": 1.0, "slab": "student_t", "element": (1.0, 1e-4)},
        "bfrm": {"sparsity": "hierarchical"},
    }
    if name not in own:
        raise ModelError(f"Models are {', '.join(own)}; asked: {name!r}.")
    known = [field.name for field in dataclasses.fields(Settings)]
    if unknown := sorted(set(changes) - set(known)):
        raise ModelError(f"Settings are {', '.join(known)}; asked: {', '.join(unknown)}.")
    arguments: dict[str, Any] = own[name] | {"factors": factors} | changes
    return Settings(**arguments)


def _four(value: Any) -> tuple[float, float, float, float]:
    if np.shape(value) != (4,):
        raise ModelError(f"hierarchy= is four numbers (a, m, s, r); found {value!r}.")
    a, m, s, r = (number(each) for each in value)
    return a, m, s, r


def _names(learn: Any) -> frozenset[str]:
    try:
        return frozenset([learn] if isinstance(learn, str) else learn)
    except TypeError:
        raise ModelError(f"learn= is a set of names, of {', '.join(LEARNABLE)}; found {learn!r}.") from None


def _one_of(name: str, value: Any, words: tuple[str, ...]) -> None:
    if not isinstance(value, str) or value not in words:
        raise ModelError(f"{name}= is one of {', '.join(words)}; found {value!r}.")


def _probabilities(known: Any) -> np.ndarray:
    try:
        found = np.asarray(known, dtype=np.float64)
    except (TypeError, ValueError) as problem:
        raise ModelError(f"known= is an array of prior probabilities (rows, factors): {problem}.") from None
    if found.ndim != 2 or not ((found >= 0.0) & (found <= 1.0)).all():
        raise ModelError(
            f"known= is an array (rows, factors) of probabilities from 0 to 1; found shape {found.shape} with values "
            f"from {np.min(found, initial=np.inf)} to {np.max(found, initial=-np.inf)}."
        )
    return found
