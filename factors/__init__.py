"""The vocabulary: families (distributions that are messages), factors, links and their operators.

Every module of this package is read, so a new factor or link needs one file and no enrolment.
"""

import importlib
import pkgutil

from .factor import LINKS, REGISTRY

for _module in pkgutil.walk_packages(__path__, f"{__name__}."):
    importlib.import_module(_module.name)

__all__ = ["LINKS", "REGISTRY"]
