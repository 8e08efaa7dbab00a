"""The names under which a program's arrays hold what is made of the data of a variable: all of them, in one place."""

from __future__ import annotations


def given_values(name: str) -> str:
    """The values of a partly observed variable: its own name would say that all of it is known."""
    return f"{name} given"


def is_given(name: str) -> str:
    """Where an entry of a partly observed variable is given."""
    return f"{name} is given"


def is_missing(name: str) -> str:
    """One where an entry of a partly observed variable is missing, zero elsewhere."""
    return f"{name} is missing"


def is_present(name: str) -> str:
    """One where an entry of an observed variable on which nothing depends is given, zero where it is missing."""
    return f"{name} present"


def prior_part(names: tuple[str, ...], number: int) -> str:
    """One of the natural parameters of a belief that is given as a prior."""
    return f"{', '.join(names)} prior {number}"


def learned_process(name: str) -> str:
    """What is known of a Gaussian process where its function is evaluated at new points."""
    return f"{name} process"
