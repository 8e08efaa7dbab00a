"""How the estimator serves a likelihood: by its type, whether it is named by a word or given as an object."""

from __future__ import annotations

import dataclasses
import functools

from .likelihoods import Detection, ExponentialGaussian, LinearGaussian, NoisyOr, PoissonGamma
from .likelihoods.contract import Likelihood
from .likelihoods.learned import Beta
from .samplers.accelerated import accelerated
from .samplers.births import given_rows
from .samplers.split_merge import with_split_merge
from .samplers.sweeps import Sweep
from .samplers.uncollapsed import uncollapsed


@dataclasses.dataclass(frozen=True)
class Kind:
    """How chains of a likelihood move and where they begin.

    Attributes:
        sweep: one transition.
        field: what mean field takes in place of the likelihood, or None where there is no mean field.
        begins: whether chains begin at draws of it.
        entries: of the data, times starts of mean field, at most; fewer starts for larger data.
    """

    sweep: Sweep
    field: Likelihood | None = None
    begins: bool = False
    entries: int = 0


@dataclasses.dataclass(frozen=True)
class Word:
    """A word for a likelihood, with priors for data of any size.

    Attributes:
        likelihood: what it stands for.
        centred, scaled: whether column means are taken off before, and entries divided by their size.
    """

    likelihood: Likelihood
    centred: bool = False
    scaled: bool = False


WORDS = {
    "gaussian": Word(LinearGaussian(), centred=True, scaled=True),
    "exponential": Word(ExponentialGaussian(), scaled=True),
    "bernoulli": Word(NoisyOr(quiet=(19.0, 1.0), attenuation=(1.0, 4.0), share=(1.0, 4.0))),
    "poisson": Word(PoissonGamma()),
}


@functools.singledispatch
def kind_of(likelihood: Likelihood) -> Kind:
    """The best that is known for a type of likelihood: steps given values for one that nothing more is known of."""
    return Kind(with_split_merge(uncollapsed))


@kind_of.register
def _(likelihood: LinearGaussian) -> Kind:
    return Kind(with_split_merge(accelerated), likelihood, begins=True, entries=1_000_000)


@kind_of.register
def _(likelihood: NoisyOr) -> Kind:
    field = dataclasses.replace(likelihood, quiet=_mean(likelihood.quiet), attenuation=_mean(likelihood.attenuation))
    return Kind(with_split_merge(given_rows), field, entries=50_000)


@kind_of.register(Detection)
@kind_of.register(ExponentialGaussian)
@kind_of.register(PoissonGamma)
def _(likelihood: Likelihood) -> Kind:
    return Kind(with_split_merge(given_rows))


def _mean(given: Beta) -> float:
    """The probability that is given, or the mean of its prior."""
    return given[0] / (given[0] + given[1]) if isinstance(given, tuple) else float(given)
