"""The errors and the one warning of the library: what was asked, what was found, why it matters and what to do."""


class CavityError(Exception):
    """Base of every error that the library raises on purpose: docs/errors.md has a section on each class."""


class ModelError(CavityError, ValueError):
    """The model, as declared, has no meaning: wrong domains, plates that do not line up, a name used twice."""


class CallError(ModelError, TypeError):
    """A call does not fit: an argument is missing, unknown, given twice or one too many; the message has the call."""


class DataError(CavityError, ValueError):
    """The data do not fit the model: wrong shape, NaN in an input, an index or label out of range, a missing input."""


class UnsupportedError(CavityError, NotImplementedError):
    """The request is meaningful but no operator serves it; the message says why and what is nearest."""


class LostError(CavityError, RuntimeError):
    """A process, machine or worker that took part is gone; the message names it, and where the work goes on."""


class CavityWarning(UserWarning):
    """An answer that is given, but not to be relied upon as it stands: a run that is not sound, a projection.

    All warnings of the library are of this category: `warnings.simplefilter("error", cv.CavityWarning)` makes them
    errors.
    """


def capital(text: str) -> str:
    """The beginning of a sentence."""
    return text[:1].upper() + text[1:]
