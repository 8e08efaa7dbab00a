"""The language: plates, variables, expressions and terms, as the user declares them."""

from . import indexing as indexing  # nodes have operators and indices from the first import on
from . import numpy_functions as numpy_functions  # and functions of NumPy
from . import unnamed as unnamed  # and terms their variables
