"""The language: plates, variables, expressions and terms, as the user declares them."""

from . import numpy_functions as numpy_functions
from . import operators as operators  # nodes have operators from the first import on
