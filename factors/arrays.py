"""Names in annotations for arrays, numbers and random keys; jaxtyping adds dtype and shape: `Float[Array, " row"]`."""

from typing import Any, TypeAlias

import jax
import numpy as np

Array: TypeAlias = jax.Array | np.ndarray  # computed or given; inside compiled functions a tracer
Numeric: TypeAlias = Array | np.number | np.bool_ | float | int | bool  # what broadcasts with an array
Exponent: TypeAlias = int | float  # of a power
Key: TypeAlias = jax.Array  # of random numbers: two 32-bit words, or one typed key
Argument: TypeAlias = Any  # as users write it, to be checked: numbers, arrays, nested lists, expressions, terms
