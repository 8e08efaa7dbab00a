"""Tables are read by their interface: values, missing entries and names arrive, and what cannot be read is named."""

import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from cavity.factors.errors import DataError
from cavity.models.sparse.tables import Table, read_table

VALUES = np.array([[1.0, np.nan, 3.0], [4.0, 5.0, -6.0]])
GENES, PEOPLE = ("BRCA1", "TP53", "MYC"), ("ann", "bob")


def same(table, values, samples=None, features=None):
    assert table.values.dtype == np.float64
    assert table.values.shape == np.shape(values)
    assert np.array_equal(table.values, values, equal_nan=True)
    assert (table.samples, table.features) == (samples, features)


class Columns:
    """The interface of polars and Arrow: names of columns, and a column by its name."""

    def __init__(self, called, names, columns, whole=False):
        self.columns = columns  # Arrow's, unless they are the names
        setattr(self, called, list(names))
        self.by_name = dict(zip(names, columns, strict=True))
        if whole:
            self.to_numpy = lambda: np.stack(columns, axis=1)

    def __getitem__(self, name):
        return SimpleNamespace(to_numpy=lambda: self.by_name[name])


@given(
    arrays.arrays(
        st.sampled_from([np.float32, np.float64, np.int16, np.uint8, np.bool_]),
        arrays.array_shapes(min_dims=2, max_dims=2, max_side=5),
        elements={"allow_nan": False, "allow_infinity": False},
    )
)
@settings(max_examples=50, deadline=None)
def test_every_way_to_hold_an_array_gives_the_same_values(values):
    expected = values.astype(np.float64)
    for data in (values, values.tolist(), scipy.sparse.csc_array(expected), SimpleNamespace(to_numpy=lambda: values)):
        same(read_table(data), expected)
    same(read_table(values.astype(object)), expected)
    masked = np.ma.masked_array(values, mask=np.arange(values.size).reshape(values.shape) == 1)
    same(read_table(masked), np.where(masked.mask, np.nan, expected))


def test_the_values_are_a_copy():
    data = np.ones((2, 2))
    read_table(data).values[0, 0] = 5.0
    read_table(read_table(data)).values[0, 0] = 5.0
    assert data[0, 0] == 1.0


@pytest.mark.parametrize("matrix", [np.asarray, scipy.sparse.csr_matrix, scipy.sparse.coo_array])
def test_annotated_data(matrix):
    values = np.array([[0.0, 2.0, 0.0], [4.0, 0.0, 6.0]])
    data = SimpleNamespace(X=matrix(values), obs_names=np.array(PEOPLE, dtype=object), var_names=list(GENES))
    same(read_table(data), values, PEOPLE, GENES)
    data.obs_names = ["0", "1"]  # what AnnData calls samples without names
    same(read_table(data), values, None, GENES)
    data.var_names = ["A", "B", "A"]
    with pytest.raises(DataError, match=r"'A' stand.*var_names_make_unique"):
        read_table(data)


@pytest.mark.parametrize("called", ["columns", "column_names"])
@pytest.mark.parametrize("whole", [False, True])
def test_tables_of_columns(called, whole):
    data = Columns(called, GENES, VALUES.T, whole)
    same(read_table(data), VALUES, None, GENES)
    if not whole:
        data.by_name["TP53"] = np.array([None, 5], dtype=object)
        same(read_table(data), VALUES, None, GENES)
        data.by_name["TP53"] = np.array(["low", "high"])
        with pytest.raises(DataError, match="'TP53' hold something else"):
            read_table(data)


def test_a_table_is_read_again_as_it_is():
    table = Table(VALUES, PEOPLE, GENES)
    same(read_table(table), VALUES, PEOPLE, GENES)
    with pytest.raises(DataError, match="each of the 3 features; found 2 names"):
        read_table(Table(VALUES, PEOPLE, GENES[:2]))


def test_data_frames():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(VALUES, index=PEOPLE, columns=GENES)
    same(read_table(frame), VALUES, PEOPLE, GENES)
    same(read_table(pandas.DataFrame(VALUES)), VALUES)
    same(read_table(frame.reset_index(drop=True)), VALUES, None, GENES)
    mixed = frame.astype({"BRCA1": "Int64", "TP53": "Float64", "MYC": "float32"})
    mixed["old"] = pandas.array([True, None], dtype="boolean")
    same(read_table(mixed), np.c_[VALUES, [1.0, np.nan]], PEOPLE, (*GENES, "old"))
    objects = pandas.DataFrame({"a": [None, 2], "b": [pandas.NA, 1.5]}, dtype=object)
    same(read_table(objects), [[np.nan, np.nan], [2.0, 1.5]], None, ("a", "b"))
    levels = pandas.DataFrame(VALUES, columns=pandas.MultiIndex.from_tuples([("x", 1), ("x", 2), ("y", 1)]))
    assert read_table(levels).features == ("x / 1", "x / 2", "y / 1")
    named = frame.set_index(pandas.Index([7, 9]))
    assert read_table(named).samples == ("7", "9")


@pytest.mark.parametrize("column", [["f", "m"], ["1.5", "2"]])
def test_columns_that_are_no_numbers_are_named(column):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(VALUES, columns=GENES).assign(sex=column, born=pandas.to_datetime(["2001", "2002"]))
    with pytest.raises(DataError, match="'sex', 'born' hold something else"):
        read_table(frame)
    with pytest.raises(DataError, match="'sex' hold"):
        read_table(frame.drop(columns="born").assign(sex=pandas.Categorical(column)))


@pytest.mark.filterwarnings("ignore:.*interchange.*")  # pandas takes leave of the protocol
def test_the_interchange_protocol_of_data_frames():
    pandas = pytest.importorskip("pandas")
    columns = {"a": [1, 2, 3], "b": pandas.array([1, None, 3], dtype="Int64"), "c": [True, False, True]}
    frame = pandas.DataFrame({**columns, "d": np.array([0.5, np.nan, 1.5], dtype=np.float32)})
    data = SimpleNamespace(__dataframe__=frame.__dataframe__)
    same(read_table(data), [[1, 1, 1, 0.5], [2, np.nan, 0, np.nan], [3, 3, 1, 1.5]], None, tuple("abcd"))
    data = SimpleNamespace(__dataframe__=frame.assign(e=list("xyz")).__dataframe__)
    with pytest.raises(DataError, match="'e' hold something else"):
        read_table(data)


@pytest.mark.parametrize(
    ("dtype", "null", "validity"),
    [
        ((0, 32, "i", "="), (2, -1), None),
        ((1, 16, "S", "="), (3, 0), np.packbits([1, 1, 0, 1, 0, 1], bitorder="little")),
        ((2, 64, "g", "="), (4, 1), np.array([0, 0, 1, 0, 1, 0], dtype=np.uint8)),
        ((20, 1, "b", "="), (3, 0), np.packbits([1, 1, 0, 1, 0, 1], bitorder="little")),
    ],
)
def test_the_interchange_protocol_with_chunks_offsets_and_marks(dtype, null, validity):
    """As Arrow lays out its columns: two chunks that skip the first value of their buffers."""
    values = np.array([9, 1, -1, 0, -1, 1]) if validity is None else np.array([1, 1, 0, 0, 1, 1])
    kinds = {0: np.int32, 1: np.uint16, 2: np.float64}
    raw = np.packbits(values, bitorder="little") if dtype[1] == 1 else values.astype(kinds[dtype[0]])

    def buffer(array):
        return SimpleNamespace(bufsize=array.nbytes, ptr=array.ctypes.data)

    buffers = {"data": (buffer(raw), dtype), "validity": validity if validity is None else (buffer(validity), None)}
    chunk = SimpleNamespace(offset=1, size=lambda: 5, describe_null=null, get_buffers=lambda: buffers)
    column = SimpleNamespace(dtype=dtype, get_chunks=lambda: [chunk, chunk])
    frame = SimpleNamespace(column_names=lambda: ["x"], get_column_by_name=lambda name: column)
    expected = np.array([1.0, np.nan, 0.0, np.nan, 1.0] * 2)[:, None]
    same(read_table(SimpleNamespace(__dataframe__=lambda: frame)), expected, None, ("x",))


def test_names_that_stand_twice_are_refused():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(VALUES, columns=["a", "b", "a"])
    with pytest.raises(DataError, match="'a' stand for several"):
        read_table(frame)
    frame = pandas.concat([pandas.DataFrame(VALUES)] * 2)
    with pytest.raises(DataError, match=r"'0', '1' stand .* reset_index"):
        read_table(frame)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (np.ones(3), r"reshape\(-1, 1\)"),
        (np.ones((2, 2, 2)), "3 dimensions"),
        (3.0, "0 dimensions"),
        (np.ones((0, 3)), r"\(0, 3\)"),
        ([[]], r"\(1, 0\)"),
        ([[1.0, 2.0], [3.0]], "different lengths"),
        ([["a", 1.0], ["b", 2.0]], "'0', '1' hold"),  # NumPy makes words of both
        (np.array([["a", 1.0], ["b", 2.0]], dtype=object), "'0' hold something else"),
        (np.ones((2, 2), dtype=complex), "complex"),
        (np.full((2, 2), np.nan), "All 4 values"),
        (np.ma.masked_all((2, 2)), "All 4 values"),
        (Table(np.array([[1.0, np.inf], [-np.inf, 2.0]]), PEOPLE, ("a", "b")), "2 values .* sample ann, feature b"),
        (np.full((3, 3), np.inf), r"9 values are infinite.*sample 0, feature 0; .*\.\.\."),
    ],
)
def test_what_is_no_table_is_said(data, said):
    with pytest.raises(DataError, match=said):
        read_table(data)


def test_no_library_of_tables_is_imported():
    code = "import sys, cavity.models.sparse.tables; assert not {'pandas', 'anndata', 'polars'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
