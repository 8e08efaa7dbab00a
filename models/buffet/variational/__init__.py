"""Mean field for binary matrices: beliefs that are independent, improved in turn, and a bound of the evidence."""

from .fit import Fitted, Prediction, fit_variational

__all__ = ["Fitted", "Prediction", "fit_variational"]
