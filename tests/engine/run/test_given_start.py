"""start= begins a run at another run's beliefs, and changes no prior."""

import numpy as np
import pytest

import cavity as cv

from .test_damping import CASES, TIGHT, counts, location_and_scale, probit_rows, two_components

CLOSE = {"rtol": 1e-6, "atol": 1e-8}


@pytest.mark.parametrize(("make", "method"), CASES, ids=lambda case: getattr(case, "__name__", str(case)))
def test_a_run_that_begins_at_its_own_fixed_point_stays_there(make, method):
    model, data, names = make()
    own = cv.infer(model, data, method=method, **TIGHT)
    again = cv.infer(model, data, method=method, start=own, seed=3, **TIGHT)
    assert again.converged
    assert again.iterations <= min(4, own.iterations)
    np.testing.assert_allclose(again.log_evidence, own.log_evidence, rtol=1e-9)
    for name in names:
        np.testing.assert_allclose(again[name].mean, own[name].mean, **CLOSE)


@pytest.mark.parametrize("from_method", ["vmp", "ep"])
@pytest.mark.parametrize("method", ["vmp", "ep", cv.power(0.5)], ids=str)
@pytest.mark.parametrize("make", [probit_rows, location_and_scale, counts])
def test_beliefs_of_another_method_change_no_fixed_point(make, from_method, method):
    """Only where a run begins: evidence and beliefs are those of the method, and the prior is that of the model."""
    model, data, names = make()
    other = cv.infer(model, data, method=from_method)
    plain = cv.infer(model, data, method=method, **TIGHT)
    there = cv.infer(model, data, method=method, start=other, **TIGHT)
    assert there.converged
    np.testing.assert_allclose(there.log_evidence, plain.log_evidence, rtol=1e-8)
    for name in names:
        np.testing.assert_allclose(there[name].mean, plain[name].mean, **CLOSE)


@pytest.mark.parametrize("method", ["vmp", "ep"])
def test_a_dictionary_of_marginals_is_enough(method):
    model, data, names = location_and_scale()
    other = cv.infer(model, data, method="vmp")
    plain = cv.infer(model, data, method=method, **TIGHT)
    there = cv.infer(model, data, method=method, start={name: other[name] for name in names}, **TIGHT)
    np.testing.assert_allclose(there["mean"].mean, plain["mean"].mean, **CLOSE)


def test_a_mixture_that_begins_at_another_mode_ends_there():
    """The other order of two components is a fixed point as well, that seeds do not lead to."""
    model, data, _ = two_components()
    own = cv.infer(model, data, method="vmp", **TIGHT)
    turned = own["mean"].family.naturals()
    other = type(own["mean"].family).from_naturals(tuple(n[::-1] for n in turned))
    there = cv.infer(model, data, method="vmp", start={"mean": other}, **TIGHT)
    np.testing.assert_allclose(there["mean"].mean, own["mean"].mean[::-1], rtol=1e-6)
    np.testing.assert_allclose(there.log_evidence, own.log_evidence, rtol=1e-9)


def test_labels_alone_decide_the_mode():
    """A start of the selectors, none of what they choose."""
    model, data, _ = two_components()
    own = cv.infer(model, data, method="vmp", **TIGHT)
    (odds,) = own["z"].family.naturals()
    turned = type(own["z"].family).from_naturals((odds[:, ::-1],))
    there = cv.infer(model, data, method="vmp", start={"z": turned}, **TIGHT)
    np.testing.assert_allclose(there["mean"].mean, own["mean"].mean[::-1], rtol=1e-6)


@pytest.mark.parametrize("method", ["vmp", "ep"])
def test_other_data_of_other_size(method):
    """What lives on plates of another size begins anew, and the diagnosis says so."""
    model, data, _ = probit_rows()
    first = cv.infer(model, data, method=method)
    more = {"x": np.array([-2.0, -1.0, 0.5, 2.0, 0.1, 1.0]), "y": np.array([False, False, True, True, False, True])}
    plain, there = (
        cv.infer(model, more, method=method, **TIGHT),
        cv.infer(model, more, method=method, start=first, **TIGHT),
    )
    np.testing.assert_allclose(there["slope"].mean, plain["slope"].mean, **CLOSE)
    mixture, rows, _ = two_components()
    of_rows = cv.infer(mixture, rows, method="vmp")
    fewer = cv.infer(mixture, {"y": rows["y"][:15]}, method="vmp", start=of_rows)
    assert "but for z" in fewer.diagnosis


def test_what_cannot_begin_there_is_refused():
    model, data, _ = location_and_scale()
    own = cv.infer(model, data, method="vmp")
    with pytest.raises(cv.DataError, match="start= takes a posterior"):
        cv.infer(model, data, start=3)
    with pytest.raises(cv.DataError, match="does not have"):
        cv.infer(model, data, start={"nobody": own["mean"]})
    with pytest.raises(cv.DataError, match="of the family"):
        cv.infer(model, data, start={"mean": own["precision"]})
    with pytest.raises(cv.DataError, match="the data observe it"):
        cv.infer(model, data, start={"y": own["mean"], "mean": own["mean"]})
    with pytest.raises(cv.ModelError, match="several random starts"):
        cv.infer(model, data, start=own, restarts=3)
    with pytest.raises(cv.ModelError, match="integrate= makes"):
        cv.infer(model, data, start=own, integrate="auto")


def test_messages_of_padded_rows_keep_their_order():
    """Rows are shuffled by the key of a run, and padded to a size that many data share: each keeps its messages."""
    model, _, _ = probit_rows()
    random = np.random.default_rng(0)
    x = random.normal(size=53)
    data = {"x": x, "y": random.random(53) < 0.5 + 0.4 * np.tanh(x)}
    own = cv.infer(model, data, method="ep", **TIGHT)
    assert own.machine.larger is not None
    again = cv.infer(model, data, method="ep", start=own, seed=5, **TIGHT)
    assert again.iterations <= 4
    np.testing.assert_allclose(again.log_evidence, own.log_evidence, rtol=1e-10)


def test_what_is_given_is_read_before_it_is_updated():
    """One datum and two components: the components have more elements and come first in a sweep.

    With a prior of precision .01 the responsibility of the first is 0, .3764, 1/2, .6236 or 1; the second and the
    fourth are unstable, and decide where a run ends. Source: paquet2007thesis.
    """
    m = cv.Model("one datum")
    n, k = m.plate("n"), m.plate("k", 2)
    mean = m.random("mean", cv.gaussian(0.0, precision=0.01), plates=k)
    z = m.random("z", cv.categorical([0.5, 0.5]), plates=n)
    m.random("x", cv.gaussian(mean[z], precision=1.0))
    own = cv.infer(m, {"x": np.zeros(1)}, method="vmp")["mean"]
    for share, wanted in ((0.05, 0.0), (0.35, 0.0), (0.4, 0.5), (0.5, 0.5), (0.6, 0.5), (0.65, 1.0)):
        first = type(own.family).from_naturals((np.zeros(2), -0.5 * (0.01 + np.array([share, 1.0 - share]))))
        found = cv.infer(m, {"x": np.zeros(1)}, method="vmp", start={"mean": first}, acceleration=0, **TIGHT)
        np.testing.assert_allclose(np.asarray(found["z"])[0, 0], wanted, atol=1e-6)
