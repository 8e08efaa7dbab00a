"""The language: plates, variables, expressions and terms, as the user declares them."""

from . import operators as operators  # nodes have operators from the first import on
