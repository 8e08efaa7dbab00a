"""Expressions as formulas: polynomials, linear forms, sums, maxima; what in them is data, and what has moments."""
