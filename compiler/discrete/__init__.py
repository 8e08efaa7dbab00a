"""Discrete variables that are summed out exactly: loops of the factor graph, tables, and the order of elimination."""
