"""The Cauchy term: Student's t of one degree of freedom, whose tails are so heavy that it has no mean."""

from __future__ import annotations

from ..arrays import Argument
from ..calls import call_checked
from ..factor import Term
from .student_t import student_t


@call_checked
def cauchy(location: Argument, scale: Argument) -> Term:
    """A Cauchy variable: 1 / (pi scale (1 + ((x - location) / scale)^2)), with median `location`.

    `location` is real, `scale` > 0: numbers, inputs, variables or expressions. It has no mean and no variance; `scale`
    is half the distance between its quartiles. It is `student_t` with one degree of freedom, and so explain and errors
    call it. Returns a term for `Model.random`, which raises ModelError for numbers outside these domains; as data they
    are a DataError. Source: tipping2005student.
    """
    return student_t(1.0, location, scale)
