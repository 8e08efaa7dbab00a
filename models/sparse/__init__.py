"""Sparse factor models: nonparametric sparse factor analysis and its family, by Markov chains and by messages."""
