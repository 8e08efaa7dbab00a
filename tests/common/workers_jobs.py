"""Jobs for tests of workers, which other processes import."""

from __future__ import annotations

import os
import signal


def square(number):
    return number * number


def inverse(number):
    return 1 // number


def die_once(job):
    number, place = job
    if number == 3 and not os.path.exists(place):
        with open(place, "w", encoding="utf-8"):
            os.kill(os.getpid(), signal.SIGKILL)
    return number


def die(number):
    if number:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def say(word):
    print(word, flush=True)
    return word


def adds(data):
    """What every worker makes once."""
    return lambda number: float(data.sum()) + number


def of_parcel(parcel, number):
    """A job that needs it."""
    return parcel.made()(number)
