"""How far draws are from what is known of their law."""

import arviz
import numpy as np


def errors_off(draws, mean, sd):
    """How many standard errors the mean of draws, (chains, draws), is from an exact one; half as many for their sd."""
    size = float(np.asarray(arviz.ess(draws)))
    return max(abs(draws.mean() - mean) / (sd / np.sqrt(size)), abs(draws.std() / sd - 1.0) * np.sqrt(size) / 2.0)
