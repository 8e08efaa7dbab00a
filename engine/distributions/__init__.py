"""Distributions that are no single family: mixtures over beliefs, tables, and the law of an outcome."""
