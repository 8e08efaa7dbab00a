"""cavity: a factor-graph compiler for Bayesian models on JAX."""
