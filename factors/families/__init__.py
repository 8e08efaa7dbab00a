"""The families: distributions in natural parameters, one file each, found by looking into the files."""

from __future__ import annotations

import importlib
import inspect
import pkgutil

from .base import ExponentialFamily, Family
from .bernoulli import Bernoulli
from .beta import Beta
from .capabilities import DiscreteFamily, DivisorFamily, GaussianFamily, TwoMomentFamily
from .categorical import Categorical
from .dirichlet import Dirichlet
from .gamma import Gamma
from .gaussian import Gaussian
from .normal_gamma import NormalGamma
from .normal_wishart import NormalWishart
from .point import Point
from .poisson import Poisson
from .spike_and_slab import SpikeAndSlab
from .vector_gaussian import VectorGaussian
from .wishart import Wishart


def _discover() -> tuple[type[Family], ...]:
    modules = [importlib.import_module(f"{__name__}.{info.name}") for info in pkgutil.iter_modules(__path__)]
    classes = [value for module in modules for value in vars(module).values() if inspect.isclass(value)]
    return tuple(dict.fromkeys(cls for cls in classes if issubclass(cls, Family) and not inspect.isabstract(cls)))


ALL: tuple[type[Family], ...] = _discover()
BY_NAME: dict[str, type[Family]] = {family.__name__: family for family in ALL}
FOR_DOMAIN: dict[str, type[ExponentialFamily]] = {
    family.kind: family for family in ALL if issubclass(family, ExponentialFamily)
}

__all__ = [
    "ALL",
    "BY_NAME",
    "FOR_DOMAIN",
    "Bernoulli",
    "Beta",
    "Categorical",
    "Dirichlet",
    "DiscreteFamily",
    "DivisorFamily",
    "ExponentialFamily",
    "Family",
    "Gamma",
    "Gaussian",
    "GaussianFamily",
    "NormalGamma",
    "NormalWishart",
    "Point",
    "Poisson",
    "SpikeAndSlab",
    "TwoMomentFamily",
    "VectorGaussian",
    "Wishart",
]
