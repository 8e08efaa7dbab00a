"""Columns of a binary matrix by their history: the integer that their entries write."""

import itertools

import numpy as np
from scipy.special import beta as beta_function


def history_rates(prior, rows):
    """Numbers of columns of each history are independent Poisson variables; these are their means."""
    ones = np.array([sum(column) for column in list(itertools.product((1, 0), repeat=rows))[:-1]])
    c = prior.concentration
    return prior.mass * c * beta_function(ones, rows - ones + c)
