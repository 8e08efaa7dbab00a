"""Priors on features beyond the Indian buffet of two parameters: other growth, known features, counts, times, trees."""

from .beta_weights import BetaWeights, Caused, CausedBits
from .coalescent_weights import (
    CoalescentWeights,
    Genealogy,
    RelatedFeatures,
    log_coalescent,
    sample_coalescent,
    shared_time,
)
from .discrete_base import BetaProcess
from .gamma_poisson import FiniteGammaPoisson, GammaPoisson
from .hidden_markov import FiniteMarkovBuffet, MarkovBuffet
from .hidden_markov_sampler import MarkovLaw, forward_backward
from .latent_events import Choice, LatentEvents, matrix_of
from .phylogenetic import PhylogeneticBuffet
from .three_parameter import StableBeta

__all__ = [
    "BetaProcess",
    "BetaWeights",
    "Caused",
    "CausedBits",
    "Choice",
    "CoalescentWeights",
    "FiniteGammaPoisson",
    "FiniteMarkovBuffet",
    "GammaPoisson",
    "Genealogy",
    "LatentEvents",
    "MarkovBuffet",
    "MarkovLaw",
    "PhylogeneticBuffet",
    "RelatedFeatures",
    "StableBeta",
    "forward_backward",
    "log_coalescent",
    "matrix_of",
    "sample_coalescent",
    "shared_time",
]
