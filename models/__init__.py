"""Shipped definitions in the language that users write: functions that return a `Model`, each in a file of its name."""

from .mixture import mixture
from .skills import skills
from .softmax_regression import softmax_regression

__all__ = ["mixture", "skills", "softmax_regression"]
