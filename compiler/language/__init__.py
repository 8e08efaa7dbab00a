"""The language: plates, variables, expressions and terms, as the user declares them."""

from . import indexing as indexing  # nodes have operators and indices from the first import on
from . import unnamed as unnamed  # and terms their variables
