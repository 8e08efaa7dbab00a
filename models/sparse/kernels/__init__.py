"""The sweep of the sampler: a pure function of (key, State, Observed, Numbers, bound, Switches), which callers compile.

Everything random belongs to an address (`bits`), such as a factor and a row, and not to the padding: a sweep of the
same key on a padded state draws the same numbers.
"""

from .parallel import collapsed, parallel

__all__ = ["collapsed", "parallel"]
