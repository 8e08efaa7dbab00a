"""Annotations that hold: under the tests the functions of these modules check what they are given and what they return.

jaxtyping compares the shapes and beartype the types, also while JAX traces. `CAVITY_UNCHECKED=1 pytest ...` leaves the
modules as they are, for a debugger or a profile.
"""

import os
import sys
from typing import Any

import jaxtyping
from beartype import beartype

# With all modules inside them.
MODULES = (
    "cavity.engine.blocks.site",
    "cavity.engine.blocks.slots",
    "cavity.engine.run",
    "cavity.engine.values",
    "cavity.factors.conditional",
    "cavity.factors.conditionals",
    "cavity.factors.families",
    "cavity.factors.kernels",
    "cavity.factors.links",
    "cavity.factors.quadrature",
    "cavity.factors.real.gaussian_process",
    "cavity.factors.scalars",
    "cavity.factors.special",
)


def install():
    """To be called before the first import of cavity."""
    if os.environ.get("CAVITY_UNCHECKED"):
        return
    assert "cavity" not in sys.modules, "cavity was imported before its annotations could be made to hold"
    jaxtyping.install_import_hook(MODULES, f"{__name__}.checked")


def checked(function):
    """beartype, but for `Self`: it asks for the class, which a method that is decorated alone does not know."""
    hints = getattr(function, "__annotations__", {})
    function.__annotations__ = {name: Any if "Self" in str(hint) else hint for name, hint in hints.items()}
    return beartype(function)
