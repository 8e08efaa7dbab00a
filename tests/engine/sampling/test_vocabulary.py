"""Geweke's test over the whole vocabulary: where nothing is observed every argument of a construct has its prior.

The models are those of the page of conditionals, all that may be random in each; means and sds of the arguments are
compared with those of their priors. Source: geweke2004getting.
"""

import jax
import numpy as np
import pytest
from doc_scripts import load
from drawn import errors_off

from cavity.engine.data.rules_of_arguments import bind_checked
from cavity.engine.sampling.joint import Joint
from cavity.engine.sampling.sample import chains_of

page = load("make_conditionals")

FAR = 5.0  # standard errors, of some hundred comparisons
NOTHING = {"m.constrain(a == b)", "m.constrain(x[winner] > x[loser])"}  # constraints, whose law is not the prior
PRIORS = {  # mean and sd of the first number of the prior of each kind of domain
    "real": (0.4, 1.0),
    "positive": (1.5, np.sqrt(0.75)),
    "unit": (0.4, 0.2),
    "boolean": (0.3, np.sqrt(0.21)),
    "category": (1.3, np.sqrt(0.61)),
    "count": (2.0, np.sqrt(2.0)),
    "simplex": (1 / 6, np.sqrt(5 / 252)),
    "vector": (0.3, 1.0),
    "posdef": (1.0, np.sqrt(0.5)),
}


def everything_random(name):
    """All arguments that may be random, and the outcome."""
    return next(page.patterns(page.CONSTRUCTS[name]))


def first_number(draws):
    """The first number of the first element, (chains, draws)."""
    return np.asarray(draws, float).reshape(*draws.shape[:2], -1)[..., 0]


CASES = [name for name in page.CONSTRUCTS if name not in NOTHING and everything_random(name) != ("out",)]
QUICK = ("cv.gamma(shape, rate)", "cv.binomial(n, p)")


@pytest.mark.parametrize("name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in CASES])
def test_arguments_have_their_priors(name):
    used = page.use(page.CONSTRUCTS[name], everything_random(name))
    data = {key: array for key, array in used.data.items() if key in used.model.inputs}
    with jax.enable_x64(True):
        joint = Joint(used.model, bind_checked(used.model, data, used.sizes), everything=True)
        draws = chains_of(joint, 2000, 2, 0, 500).draws
    arguments = [argument for argument in everything_random(name) if argument != "out"]
    latent = {argument: joint.variables[argument].domain.kind for argument in arguments}
    off = {a: errors_off(first_number(draws[a][:, 500:]), *PRIORS[kind]) for a, kind in latent.items()}
    assert max(off.values()) < FAR, off


@pytest.mark.slow
def test_the_page_is_current():
    assert page.renewed() == page.PAGE.read_text(), "run python docs/make_conditionals.py"


def test_what_is_refused_is_what_is_observed_exactly():
    construct = page.CONSTRUCTS["a + b"]
    assert page.drawn(construct, ("a", "b")) == {"a": page.EXACTLY, "b": page.EXACTLY}
    assert "Gaussian" in page.drawn(construct, ("a", "b", "out"))["a"]
