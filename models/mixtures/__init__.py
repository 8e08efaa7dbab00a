"""Gaussian mixtures as an estimator: the model, its predictive densities, and how a fit begins."""
