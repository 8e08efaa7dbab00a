"""Priors on features beyond the Indian buffet of two parameters: other growth, known features, counts, times, trees."""

from .beta_weights import BetaWeights, Caused, CausedBits
from .coalescent_sampler import RelatedFactors
from .coalescent_weights import (
    CoalescentWeights,
    Genealogy,
    RelatedFeatures,
    log_coalescent,
    sample_coalescent,
    shared_time,
)
from .discrete_base import BetaProcess
from .discrete_base_sampler import BetaProcessLaw
from .gamma_poisson import FiniteGammaPoisson, GammaPoisson
from .gamma_poisson_sampler import CountLaw, counted
from .hidden_markov import FiniteMarkovBuffet, MarkovBuffet
from .hidden_markov_sampler import MarkovLaw, forward_backward
from .latent_events import Choice, LatentEvents, matrix_of
from .latent_events_sampler import sample_events
from .phylogenetic import PhylogeneticBuffet
from .phylogenetic_sampler import PhylogeneticLaw
from .three_parameter import StableBeta

__all__ = [
    "BetaProcess",
    "BetaProcessLaw",
    "BetaWeights",
    "Caused",
    "CausedBits",
    "Choice",
    "CoalescentWeights",
    "CountLaw",
    "FiniteGammaPoisson",
    "FiniteMarkovBuffet",
    "GammaPoisson",
    "Genealogy",
    "LatentEvents",
    "MarkovBuffet",
    "MarkovLaw",
    "PhylogeneticBuffet",
    "PhylogeneticLaw",
    "RelatedFactors",
    "RelatedFeatures",
    "StableBeta",
    "counted",
    "forward_backward",
    "log_coalescent",
    "matrix_of",
    "sample_coalescent",
    "sample_events",
    "shared_time",
]
