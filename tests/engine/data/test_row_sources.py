"""`cv.rows`: files of every kind give the rows that were written, by stretches, and say what is wrong with them."""

from __future__ import annotations

import dealt_models
import numpy as np
import pytest

import cavity as cv
from cavity.engine.data.row_sources import loaded

ROWS = np.random.default_rng(0).normal(size=(257, 3))


def parquet(place, columns, name="rows.parquet", **options):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table(columns), place / name, row_group_size=50, **options)
    return place / name


def written(kind, place):
    """The rows in one file or in several, and what `cv.rows` is given."""
    if kind == "npy":
        np.save(place / "rows.npy", ROWS)
        return {"source": place / "rows.npy"}
    if kind == "several npy":
        np.save(place / "a.npy", ROWS[:100])
        np.save(place / "b.npy", ROWS[100:])
        return {"source": str(place / "*.npy")}
    if kind == "columns":
        columns = {f"c{i}": ROWS[:, i] for i in range(3)} | {"other": np.arange(257)}
        return {"source": parquet(place, columns), "columns": ["c0", "c1", "c2"]}
    if kind == "lists":
        pa = pytest.importorskip("pyarrow")
        return {
            "source": parquet(place, {"x": pa.FixedSizeListArray.from_arrays(pa.array(ROWS.ravel()), 3)}),
            "columns": "x",
        }
    if kind == "zarr":
        zarr = pytest.importorskip("zarr")
        zarr.create_array(str(place / "rows.zarr"), data=ROWS, chunks=(40, 3))
        return {"source": place / "rows.zarr"}
    pa = pytest.importorskip("pyarrow")
    import pyarrow.ipc as ipc

    table = pa.table({f"c{i}": ROWS[:, i] for i in range(3)})
    with pa.OSFile(str(place / "rows.arrow"), "wb") as file, ipc.new_file(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=60)
    return {"source": place / "rows.arrow"}


KINDS = ["npy", "several npy", "columns", "lists", "zarr", "arrow"]


@pytest.mark.parametrize("kind", KINDS)
def test_any_stretch_is_that_of_the_array(kind, tmp_path):
    source = cv.rows(**written(kind, tmp_path))
    assert source.shape == (257, 3)
    for start, stop in [(0, 257), (0, 1), (40, 61), (99, 101), (256, 257), (49, 151)]:
        np.testing.assert_array_equal(source.read_rows(start, stop), ROWS[start:stop])
    np.testing.assert_array_equal(np.asarray(source), ROWS)


def regression():
    return dealt_models.logistic(columns=3)[0]


Y = ROWS[:, 0] > 0.1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stream", [False, True])
def test_answers_are_those_of_the_array(kind, stream, tmp_path):
    source = cv.rows(**written(kind, tmp_path), stream=stream)
    np.save(tmp_path / "y", Y)
    one = cv.infer(regression(), {"x": ROWS, "y": Y}, method="ncvmp", accuracy="fast")
    other = cv.infer(
        regression(), {"x": source, "y": cv.rows(str(tmp_path / "y.npy"))}, method="ncvmp", accuracy="fast"
    )
    assert other.log_evidence == pytest.approx(one.log_evidence, rel=1e-12)
    np.testing.assert_allclose(other["weight"].mean, one["weight"].mean, rtol=1e-10)


def test_the_default_answer_is_one_inference(tmp_path):
    """No grid, no draws: nobody has all the rows at once."""
    np.save(tmp_path / "x.npy", ROWS)
    data = {"x": cv.rows(tmp_path / "x.npy", stream=True), "y": Y}
    one, other = cv.infer(regression(), data), cv.infer(regression(), {"x": ROWS, "y": Y}, accuracy="fast")
    np.testing.assert_allclose(one["weight"].mean, other["weight"].mean, rtol=1e-5)
    assert "unchecked" in repr(one)
    with pytest.raises(cv.UnsupportedError, match="The joint density needs all rows at once"):
        one.importance()
    with pytest.raises(cv.ModelError, match="or they are streamed"):
        cv.infer(regression(), data, integrate="auto")


def test_a_program_for_one_file_serves_another(tmp_path):
    program = cv.compile(regression(), observed=["y"], method="ncvmp")
    for i, rows in enumerate([ROWS, ROWS[::-1].copy()]):
        np.save(tmp_path / f"{i}.npy", rows)
        found = program({"x": cv.rows(tmp_path / f"{i}.npy", stream=True), "y": rows[:, 0] > 0.1})
        np.testing.assert_allclose(found["weight"].mean, program({"x": rows, "y": rows[:, 0] > 0.1})["weight"].mean)
    assert program.traces == 2  # of rows that are streamed, and of those in memory


def test_streamed_rows_under_ep(tmp_path):
    np.save(tmp_path / "x.npy", ROWS)
    one = cv.infer(regression(), {"x": ROWS, "y": Y}, method="ep", tolerance=1e-10)
    other = cv.infer(
        regression(), {"x": cv.rows(tmp_path / "x.npy", stream=True), "y": Y}, method="ep", tolerance=1e-10
    )
    np.testing.assert_allclose(other["weight"].mean, one["weight"].mean, rtol=1e-7)


def test_what_is_no_number_is_told_with_its_place(tmp_path):
    wrong = ROWS.copy()
    wrong[201, 2] = np.nan
    np.save(tmp_path / "x.npy", wrong)
    with pytest.raises(cv.DataError, match=r"'x'.*found nan in row 201, at \[2\]"):
        cv.infer(regression(), {"x": cv.rows(tmp_path / "x.npy", stream=True), "y": Y}, method="ncvmp")


def test_bad_sources(tmp_path):
    np.save(tmp_path / "x.npy", ROWS)
    np.save(tmp_path / "z.npy", ROWS[:, :2])
    (tmp_path / "x.csv").write_text("1,2\n")
    with pytest.raises(cv.DataError, match="found no file"):
        cv.rows(tmp_path / "y.npy")
    with pytest.raises(cv.DataError, match=r"reads \.npy"):
        cv.rows(tmp_path / "x.csv")
    with pytest.raises(cv.DataError, match="different shapes"):
        cv.rows([tmp_path / "x.npy", tmp_path / "z.npy"])
    with pytest.raises(cv.DataError, match="no column 'd'"):
        cv.rows(parquet(tmp_path, {"c": np.arange(3.0)}), "d")
    with pytest.raises(cv.DataError, match="are not numbers"):
        cv.rows(parquet(tmp_path, {"c": ["a", "b"]}), "c")
    with pytest.raises(cv.DataError, match="only an input of vectors"):
        cv.infer(regression(), {"x": ROWS, "y": cv.rows(parquet(tmp_path, {"y": Y.astype(float)}), "y", stream=True)})


def test_a_posterior_of_streamed_rows_cannot_be_saved(tmp_path):
    np.save(tmp_path / "x.npy", ROWS)
    found = cv.infer(regression(), {"x": cv.rows(tmp_path / "x.npy", stream=True), "y": Y}, method="ncvmp")
    with pytest.raises(cv.UnsupportedError, match="streamed from files"):
        found.save(tmp_path / "posterior")


def test_rows_of_this_process_are_an_array():
    data = loaded({"x": cv.rows(ROWS), "y": Y}, None)
    assert data["x"] is ROWS or np.array_equal(data["x"], ROWS)
