"""Regressions with effects of groups, from a formula such as `y ~ x + (1 | school)`, for the command line."""
