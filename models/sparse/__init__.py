"""Sparse factor models: nonparametric sparse factor analysis and its family, by Markov chains and by messages.

`sample_posterior(data, key, draws, family("nsfa"))` draws loadings, factors and their number; `log_density`,
`reconstruct` and `factors_given` use draws on other samples; `summarise_loadings` brings draws into one order.
"""

from ...engine.answers.loadings import (
    canonical,
    explained,
    fraction_of_zeros,
    match_factors,
    reconstruction_error,
    summarise_loadings,
    support_scores,
    unit_factors,
)
from ...engine.plots.factors import plot_factors, plot_loadings
from ...engine.plots.runs import plot_count, plot_scores, plot_sparsity
from .chains import FactorChains, sample_posterior
from .data import Centred, Data, centred, held_out_mask
from .ppca import ppca_evidence
from .predict import Draw, draw_factors, factors_given, log_density, reconstruct, sample_predictive
from .settings import Priors, Settings, family

__all__ = [
    "Centred",
    "Data",
    "Draw",
    "FactorChains",
    "Priors",
    "Settings",
    "canonical",
    "centred",
    "draw_factors",
    "explained",
    "factors_given",
    "family",
    "fraction_of_zeros",
    "held_out_mask",
    "log_density",
    "match_factors",
    "plot_count",
    "plot_factors",
    "plot_loadings",
    "plot_scores",
    "plot_sparsity",
    "ppca_evidence",
    "reconstruct",
    "reconstruction_error",
    "sample_posterior",
    "sample_predictive",
    "summarise_loadings",
    "support_scores",
    "unit_factors",
]
