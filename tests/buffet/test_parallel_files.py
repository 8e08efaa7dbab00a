"""Shards of files: of NumPy, Parquet, Arrow and zarr, the same numbers."""

import sys

import numpy as np
import pytest

import cavity as cv
from cavity.models.buffet.parallel import shards_of


def values():
    found = np.random.default_rng(0).normal(size=(7, 3))
    found[2, 1] = np.nan
    return found


def parquet(path, table):
    arrow, files = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    files.write_table(arrow.table({f"x{d}": column for d, column in enumerate(table.T)}), path, row_group_size=3)


def feather(path, table):
    arrow, files = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.feather")
    files.write_feather(arrow.table({f"x{d}": column for d, column in enumerate(table.T)}), path)


def zarr(path, table):
    pytest.importorskip("zarr").save_array(path, table)


@pytest.mark.parametrize(
    ("ending", "write"),
    [("npy", np.save), ("parquet", parquet), ("feather", feather), ("zarr", zarr)],
    ids=["numpy", "parquet", "arrow", "zarr"],
)
def test_files_hold_the_rows_of_arrays(tmp_path, ending, write):
    path = str(tmp_path / f"part.{ending}")
    write(path, values())
    found, given = shards_of([path, path]), shards_of([values(), values()])
    for one, other in zip(found, given, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_file_of_another_kind_is_told_of(tmp_path):
    path = tmp_path / "part.txt"
    path.write_text("1 2 3")
    with pytest.raises(cv.DataError, match=r"reads \.npy, \.parquet"):
        shards_of([path])


def test_what_is_not_installed_is_told_of(tmp_path, monkeypatch):
    path = tmp_path / "part.zarr"
    path.mkdir()
    monkeypatch.setitem(sys.modules, "zarr", None)
    with pytest.raises(ImportError, match=r"pip install 'cavity\[data\]'"):
        shards_of([path])
