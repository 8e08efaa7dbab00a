"""AnnData and MuData where tables are taken: by name, with the names of their rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import cavity as cv
from cavity.compiler.data.labels import columns_of

anndata = pytest.importorskip("anndata")
pandas = pytest.importorskip("pandas")
sparse = pytest.importorskip("scipy.sparse")

COUNTS = np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 1.0], [4.0, 1.0, 0.0], [2.0, 2.0, 2.0]])
CELLS, GENES = ["c1", "c2", "c3", "c4"], ["g1", "g2", "g3"]


def cells(matrix=COUNTS, rows=CELLS):
    obs = pandas.DataFrame({"batch": ["a", "b", "a", "b"], "depth": [3.0, 4.0, 5.0, 6.0]}, index=rows)
    var = pandas.DataFrame({"length": [1.0, 2.0, 3.0]}, index=GENES)
    return anndata.AnnData(X=matrix, obs=obs, var=var, layers={"scaled": COUNTS / 2.0})


def model(name="X"):
    m = cv.Model("cells")
    cell, gene, batch = m.plate("cell"), m.plate("gene"), m.plate("batch_")
    which = m.input("batch", cv.index(batch), plates=cell)
    m.input("length", cv.real, plates=gene)
    shift = m.random("shift", cv.gaussian(0.0, variance=1.0), plates=batch)
    level = m.random("level", cv.gaussian(0.0, variance=1.0), plates=gene)
    m.random(name, cv.gaussian(level + shift[which], variance=1.0), plates=(cell, gene))
    return m


@pytest.fixture(scope="module")
def right():
    columns = {"batch": ["a", "b", "a", "b"], "length": [1.0, 2.0, 3.0], "X": COUNTS}
    return cv.infer(model(), columns, accuracy="fast")


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])
def test_a_model_takes_what_it_declares(make, right):
    posterior = cv.infer(model(), cells(make(COUNTS)), accuracy="fast")
    assert_allclose(posterior["level"].mean, right["level"].mean)
    assert_allclose(posterior["level"]["g2"], right["level"].mean[1])
    assert posterior["shift"].sel(batch_="b").mean == posterior["shift"].mean[1]


def test_layers_and_obsm_are_found_and_rows_keep_their_names():
    data = cells()
    data.obsm["pca"] = COUNTS[:, :2]
    found = columns_of(model("scaled"), data)
    assert sorted(found) == ["batch", "length", "scaled"]
    assert_array_equal(found["scaled"].to_numpy(), COUNTS / 2.0)
    assert list(found["scaled"].index) == CELLS
    assert list(columns_of(model("pca"), data)["pca"].index) == CELLS
    data.obsm["few"] = sparse.csr_matrix(COUNTS[:, :2])
    assert_array_equal(columns_of(model("few"), data)["few"].to_numpy(), COUNTS[:, :2])


def test_rows_that_nobody_named_have_no_names():
    found = columns_of(model(), cells(rows=["0", "1", "2", "3"]))
    assert type(found["X"].index) is pandas.RangeIndex
    assert type(found["batch"].index) is pandas.RangeIndex


def test_a_name_in_two_places_is_told():
    data = cells()
    data.layers["batch"] = COUNTS
    with pytest.raises(cv.DataError, match="more than once: in layers and in obs"):
        columns_of(model(), data)


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning")
def test_matrices_of_the_same_rows_are_taken_by_their_names():
    mudata = pytest.importorskip("mudata")
    both = mudata.MuData({"rna": cells(), "protein": cells(COUNTS + 1.0)})
    found = columns_of(model("protein"), both)
    assert_array_equal(found["protein"].to_numpy(), COUNTS + 1.0)
    assert_array_equal(columns_of(model("rna:scaled"), both)["rna:scaled"].to_numpy(), COUNTS / 2.0)


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning")
def test_matrices_of_other_rows_are_told():
    mudata = pytest.importorskip("mudata")
    both = mudata.MuData({"rna": cells(), "protein": cells(rows=["c1", "c2", "c3", "c9"])})
    with pytest.raises(cv.DataError, match="other rows"):
        columns_of(model("protein"), both)


@pytest.mark.slow
def test_estimators_take_them_too():
    estimator = pytest.importorskip("cavity.models.mixtures.estimator").GaussianMixture
    rows = np.random.default_rng(0).normal(size=(30, 2))
    data = anndata.AnnData(X=sparse.csr_matrix(rows), var=pandas.DataFrame(index=["u", "v"]))
    fitted = estimator(2, random_state=0).fit(data)
    assert list(fitted.feature_names_in_) == ["u", "v"]
    assert_allclose(fitted.predict_proba(data), estimator(2, random_state=0).fit(rows).predict_proba(rows))
