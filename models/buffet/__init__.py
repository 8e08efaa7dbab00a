"""Priors on binary matrices: the Indian buffet process, the beta-Bernoulli model, their constructions and updates."""

from .ordering import LeftOrdered, left_ordered
from .prior import BetaBernoulli, IndianBuffet, harmonic
from .sample import Draw, sample_beta_process, sample_finite, sample_restaurant, sample_stick_breaking
from .update import draw_concentration, draw_finite_mass, draw_mass

__all__ = [
    "BetaBernoulli",
    "Draw",
    "IndianBuffet",
    "LeftOrdered",
    "draw_concentration",
    "draw_finite_mass",
    "draw_mass",
    "harmonic",
    "left_ordered",
    "sample_beta_process",
    "sample_finite",
    "sample_restaurant",
    "sample_stick_breaking",
]
