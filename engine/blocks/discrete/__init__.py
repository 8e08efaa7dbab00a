"""Discrete variables: sum-product over tables, and networks summed out jointly."""
