"""What sparse factor models are asked for: words and numbers without meaning are named, others are kept as said."""

import dataclasses

import jax
import numpy as np
import pytest

from cavity.factors.errors import ModelError
from cavity.models.sparse.data import Data, held_out_mask, numbers_of, switches_of
from cavity.models.sparse.settings import Priors, Settings, family

VALUES = np.random.default_rng(0).normal(size=(3, 5))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"sparsity": ["buffet"]}, "sparsity="),
        ({"precision": "2"}, "'factor', 'shared' or a positive number; found '2'"),
        ({"precision": True}, "precision="),
        ({"precision": np.ones(2)}, "precision="),
        ({"noise": -1.0}, "noise="),
        ({"mass": "1"}, "mass="),
        ({"concentration": np.inf}, "concentration="),
        ({"learn": 3}, "a set of names"),
        ({"learn": {"alpha", 3}}, "asked: 3, alpha"),
        ({"learn": {"precision_rate"}, "precision": 2.0}, "take precision='factor'"),
        ({"learn": {"noise_rate"}, "noise": 2.0}, "take noise='row'"),
        ({"learn": {"concentration"}, "sparsity": "finite", "factors": 2}, "sparsity='buffet'"),
        ({"spike": 1.0}, "spike="),
        ({"most": 0}, "most="),
        ({"shared": -1}, "shared="),
        ({"shared": 5, "slab": "laplace"}, "Gaussian slabs"),
        ({"shared": 5, "sparsity": "finite", "factors": 2}, "Indian buffet"),
        ({"scores": "dirichlet"}, "fixed numbers of factors"),
        ({"scores": "other"}, "scores="),
        ({"score_mass": 0.0}, "score_mass="),
        ({"element": "ab"}, "element="),
        ({"hierarchy": (1.0, 2.0, 1.0, 0.5)}, "between 0 and 1"),
        ({"known": [[np.nan]]}, "probabilities from 0 to 1"),
        ({"priors": {"mass": (1.0, 1.0)}}, "a Priors"),
    ],
)
def test_what_has_no_meaning_is_named(arguments, words):
    with pytest.raises(ModelError, match=words):
        Settings(**arguments)


def test_priors_are_two_positive_numbers():
    for pair in ((1.0,), ("1", 2.0), None, (0.0, 1.0)):
        with pytest.raises(ModelError, match="prior of noise"):
            Priors(noise=pair)  # pyright: ignore[reportArgumentType]


def test_numbers_of_any_kind_are_kept_as_numbers():
    for number in (2, np.float32(2.0), np.int64(2)):
        settings = Settings(precision=number, noise=number, mass=number)
        switches = switches_of(settings, Data(VALUES))
        assert (switches.precision, switches.noise) == ("fixed", "fixed")
        assert numbers_of(settings, 3).precision_prior.tolist() == [2.0, 1.0]
        assert dataclasses.asdict(settings) == dataclasses.asdict(Settings(precision=2.0, noise=2.0, mass=2.0))


def test_names_of_the_family_and_its_changes():
    assert family("fokoue", 3, element=(1.0, 0.5)).element == (1.0, 0.5)
    with pytest.raises(ModelError, match="Models are nsfa"):
        family("ica")
    with pytest.raises(ModelError, match="asked: alpha"):
        family("nsfa", alpha=2.0)


def test_a_key_that_is_none_is_named():
    with pytest.raises(ModelError, match=r"jax\.random\.key\(0\)"):
        held_out_mask((3, 5), 0.2, 0)
    assert held_out_mask((3, 5), 0.2, jax.random.key(0)).sum() == 3
