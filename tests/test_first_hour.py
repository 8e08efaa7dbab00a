"""The table of first models: each has a reference of all its latent variables, and the marks mean what they say."""

import json

import numpy as np
import pytest
from first_hour_models import FILES, FOLDER, load


@pytest.mark.parametrize("file", FILES)
def test_every_latent_variable_of_every_model_has_its_truth(file):
    references = json.loads((FOLDER / f"{file}.json").read_text())
    models = {function.__name__: function for function in load(file).MODELS}
    assert sorted(models) == sorted(references)
    for name, function in models.items():
        model, data, *_ = function()
        given = {key for key, value in data.items() if not np.any(np.isnan(np.asarray(value, float)))}
        latent = {key: term for key, term in model.randoms.items() if key not in given}
        assert set(latent) <= set(references[name]["parameters"]), name
        assert "\n" not in function.__doc__ or "Refused:" in function.__doc__, name


def test_marks_tell_right_from_off_from_wrong():
    table = load("table")
    truth = {"a": {"mean": [0.0, 2.0], "sd": [1.0, 2.0]}, "b": {"mean": 0.5}}

    def mark(means, sds, probability):
        return table.mark(table.errors(truth, {"a": np.array(means), "b": np.array(probability)}, {"a": np.array(sds)}))

    assert mark([0.0, 2.1], [1.05, 2.0], 0.51) == "right"
    assert mark([0.0, 2.3], [1.0, 2.0], 0.5) == "off"
    assert mark([0.0, 2.0], [1.0, 2.3], 0.5) == "off"
    assert mark([0.0, 2.0], [1.0, 2.0], 0.55) == "off"
    assert mark([0.0, 2.6], [1.0, 2.0], 0.5) == "wrong"
    assert mark([0.0, 2.0], [0.7, 2.0], 0.5) == "wrong"
    assert mark([0.0, 2.0], [1.0, 2.0], 0.65) == "wrong"
    assert mark([0.0, np.nan], [1.0, 2.0], 0.5) == "wrong"


def test_classes_without_order_are_compared_in_the_best_one():
    table = load("table")

    class Marginal:
        def __init__(self, mean, sd):
            self.mean, self.sd = np.array(mean), np.array(sd)

    posterior = {"mean": Marginal([5.0, 1.0], [1.0, 0.5]), "z": Marginal([[0.1, 0.9]], [[0.3, 0.3]])}
    truth = {"mean": {"mean": [1.0, 5.0], "sd": [0.5, 1.0]}, "z": {"mean": [[0.9, 0.1]]}}
    ordered = table.compared(posterior, {"parameters": truth, "permuted": {"mean": 0, "z": 1}})
    assert table.mark(ordered) == "right"
    assert table.mark(table.compared(posterior, {"parameters": truth})) == "wrong"
