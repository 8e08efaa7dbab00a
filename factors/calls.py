"""Calls that do not fit, and attributes that are not there: each is told in a sentence, at no cost where all is right.

What a user calls is decorated: functions by `call_checked`, classes by `methods_checked`. A call that fits runs as it
would undecorated, a tenth of a microsecond later; only where it ends in a TypeError is it asked whether its arguments
were the reason.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, ParamSpec, TypeVar

Asked = ParamSpec("Asked")
Built = TypeVar("Built")
Kind = TypeVar("Kind", bound=type)

OPERATORS = ("__init__", "__call__")  # what users call by a class or by what it made
_MARK = "_calls_are_checked"
_TOLD: set[int] = set()  # of what an attribute is being told at this moment


def call_checked(function: Callable[Asked, Built], shown: str = "", bound: bool = False) -> Callable[Asked, Built]:
    """A function that says how it is called where a call does not fit it: a CallError in place of a TypeError.

    It is called `shown` in messages, by default by its own name; `bound` is true of a method, whose first argument is
    what it is asked of.
    """

    @functools.wraps(function)
    def call(*args: Asked.args, **kwargs: Asked.kwargs) -> Built:
        try:
            return function(*args, **kwargs)
        except TypeError:
            check_call(function, args, kwargs, shown, bound)
            raise

    setattr(call, _MARK, True)
    return call


def check_call(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    shown: str = "",
    bound: bool = False,
) -> None:
    """CallError where a function does not take these arguments; `shown` and `bound` as of `call_checked`."""
    signature = inspect.signature(function)
    try:
        signature.bind(*args, **kwargs)
    except TypeError:
        from ..how_to_call import call_refusal  # few calls are wrong

        if bound:
            signature = signature.replace(parameters=[*signature.parameters.values()][1:])
        if function.__name__ == "__init__" and args:
            shown = type(args[0]).__name__  # of a class that has the constructor of another
        raise call_refusal(shown or function.__name__, signature, args[bound:], kwargs) from None


def is_checked(function: Callable[..., Any]) -> bool:
    """Whether calls of a function that do not fit are told."""
    return getattr(function, _MARK, False)


def methods_checked(shown: str) -> Callable[[Kind], Kind]:
    """A decorator of classes: calls of their methods, and attributes that they lack, are told in a sentence.

    `shown` is what a user has of the class: in messages a method is `shown.method(...)`, and an attribute is told with
    what it is called here (`names_elsewhere.attribute_advice`). Methods whose names begin with an underscore are left
    alone, but for the constructor and the call.
    """

    def decorated(kind: Kind) -> Kind:
        for name, member in [*vars(kind).items(), *_of_abstract_bases(kind)]:
            if (name.startswith("_") and name not in OPERATORS) or is_checked(getattr(member, "__func__", member)):
                continue
            title = {"__init__": kind.__name__, "__call__": shown}.get(name, f"{shown}.{name}")
            if inspect.isfunction(member):
                setattr(kind, name, call_checked(member, title, bound=True))
            elif isinstance(member, (classmethod, staticmethod)):
                is_bound = isinstance(member, classmethod)
                setattr(kind, name, type(member)(call_checked(member.__func__, title, is_bound)))
        if not any("__getattr__" in vars(base) for base in kind.__mro__):
            kind.__getattr__ = lambda thing, name: _lacking(thing, shown, name)
        return kind

    return decorated


def _of_abstract_bases(kind: type) -> list[tuple[str, Any]]:
    """What a mapping or a sequence has of Python's own classes."""
    bases = [base for base in kind.__mro__ if base.__module__ == "collections.abc"]
    return [(name, member) for base in bases for name, member in vars(base).items() if name not in vars(kind)]


def _lacking(thing: object, shown: str, name: str) -> NoReturn:
    """What is asked for an attribute that it has not."""
    if name.startswith("_") or any(name in vars(kind) for kind in type(thing).__mro__):
        object.__getattribute__(thing, name)  # Python's own error, or that of the property that raised one
    from ..names_elsewhere import attribute_advice

    advice = "" if id(thing) in _TOLD else _advised(thing, attribute_advice, shown, name)
    raise AttributeError(f"{shown}.{name}: there is no such attribute.{advice}")


def _advised(thing: object, advice: Callable[[object, str, str], str], shown: str, name: str) -> str:
    """What to write instead; while that is found out, what is half made is asked for no more."""
    _TOLD.add(id(thing))
    try:
        return f" {advice(thing, shown, name)}"
    except AttributeError:
        return ""
    finally:
        _TOLD.discard(id(thing))
