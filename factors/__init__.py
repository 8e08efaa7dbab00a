"""The vocabulary: families (distributions that are messages), factors, links and their operators.

Every module of this package is read, so a new factor or link needs one file and no enrolment.
"""

import importlib
import pkgutil

from .factor import LINKS, REGISTRY

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

__all__ = ["LINKS", "REGISTRY"]
