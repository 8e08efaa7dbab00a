"""Gibbs steps given values: Geweke's test for every likelihood, with controls that must fail."""

import pytest
from geweke_of_features import geweke

from cavity.models.buffet.likelihoods import LinearGaussian, NoisyOr
from cavity.models.buffet.samplers.law import Law
from cavity.models.buffet.samplers.uncollapsed import uncollapsed

GIVEN = {
    "gaussian": LinearGaussian(noise_precision=(4.0, 2.0), value_precision=(4.0, 4.0)),
    "noisy-or": NoisyOr(quiet=(4.0, 2.0), attenuation=(2.0, 3.0), share=(3.0, 3.0)),
}
BUFFET = Law(mass=(8.0, 8.0), concentration=(8.0, 4.0))
FINITE = Law(mass=(8.0, 4.0), features=3)


@pytest.mark.parametrize("law", [BUFFET, FINITE], ids=["buffet", "finite"])
@pytest.mark.parametrize("name", GIVEN)
def test_sweeps_leave_the_law_of_model_and_data_as_it_is(name, law):
    places = 16 if law.features is None else law.features
    scores = geweke(uncollapsed, GIVEN[name], law, places=places, missing=[(0, 1)])
    assert max(abs(score) for score in scores.values()) < 4.0, scores
