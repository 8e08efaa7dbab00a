"""Files of arrays and JSON in one zip: no pickle, nothing that runs, nothing that is larger in memory than on disk.

Nothing is compressed, so the sizes that a file declares cannot exceed its own; they are compared before anything is
read. `sums.json` holds a digest of every other part, by which a part of another file is told.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import math
import os
import secrets
import stat
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from ...factors.errors import DataError, ModelError
from .paths import told

DAMAGED = (
    zipfile.BadZipFile, zipfile.LargeZipFile, KeyError, IndexError, TypeError, ValueError, AttributeError, EOFError,
    OSError, NotImplementedError, RecursionError, MemoryError, OverflowError, zlib.error,
)  # fmt: skip
"""What reading a damaged file may raise."""


class Foreign(zipfile.BadZipFile):
    """An archive of another kind."""


def check_folder(path: str | os.PathLike[str] | None) -> None:
    """Errors before a run, not at the first write: DataError for a folder that is not there, ModelError for no path."""
    if not isinstance(path, (str, os.PathLike, type(None))):
        raise ModelError(f"checkpoint= is the path of a file; found {path!r}.")
    if path is None:
        return
    if not os.path.basename(path) or os.path.isdir(path):
        raise ModelError(
            f"checkpoint= is the path of a file; found {path!r}, which is {'a folder' if path else 'empty'}. Add a "
            "name, such as checkpoint='run.checkpoint'."
        )
    folder = os.path.dirname(os.fspath(path))
    if folder and not os.path.isdir(folder):
        raise DataError(
            f"The checkpoint goes to '{os.fspath(path)}', but there is no folder '{folder}'. Make it first."
        )


def write_archive(path: str | os.PathLike[str], meta: str, arrays: Iterable[np.ndarray]) -> None:
    """Writes `meta.json` and the arrays as `0.npy`, `1.npy`, ... The file is replaced as a whole or not at all.

    A new file has the permissions that the user's umask gives, one that is replaced those that it had. Raises FileError
    where no file can be.
    """
    with told(path, "written"):
        folder, name = os.path.split(os.path.abspath(path))
        if not os.fspath(path):
            raise ValueError("the path is empty")
        if os.path.isdir(path):
            raise IsADirectoryError
        draft = os.path.join(folder, f"{name[:50]}{secrets.token_hex(8)}")  # no longer than a name may be
        handle = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0), 0o666)
    try:
        with os.fdopen(handle, "wb") as file, zipfile.ZipFile(file, "w") as archive:
            sums = {}
            for part, content in _parts(meta, arrays):
                archive.writestr(part, content)
                sums[part] = hashlib.sha256(content).hexdigest()
            archive.writestr("sums.json", json.dumps(sums))
        with told(path, "written"):
            with contextlib.suppress(FileNotFoundError):
                os.chmod(draft, stat.S_IMODE(os.stat(path).st_mode))
            os.replace(draft, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.remove(draft)
        raise


def _parts(meta: str, arrays: Iterable[np.ndarray]) -> Iterable[tuple[str, bytes]]:
    yield "meta.json", meta.encode()
    for number, array in enumerate(arrays):
        content = io.BytesIO()
        np.save(content, array, allow_pickle=False)
        yield f"{number}.npy", content.getvalue()


@contextlib.contextmanager
def opened(path: str | os.PathLike[str]) -> Iterator[Archive]:
    """The file at `path`. Raises one of `DAMAGED` where it is no archive of this kind, before it reads any array."""
    with told(path, "read"):
        file = open(path, "rb")  # noqa: SIM115
    with file, zipfile.ZipFile(file) as archive:
        yield Archive(archive, os.path.getsize(path))


class Archive:
    """An open file: its description `meta`, and its arrays by number, each read and checked when it is asked for.

    Raises one of `DAMAGED` where the parts of the file are not those that were written.
    """

    def __init__(self, archive: zipfile.ZipFile, size: int) -> None:
        members = archive.infolist()
        if "meta.json" not in archive.namelist():
            raise Foreign("it has no part meta.json")
        if any(member.compress_type != zipfile.ZIP_STORED for member in members):
            raise zipfile.BadZipFile("its parts are compressed, which cavity does not do")
        if (total := sum(member.file_size for member in members)) > size:
            raise zipfile.BadZipFile(f"its parts declare {total} bytes, more than the file's {size}")
        if len({member.filename for member in members}) < len(members):
            raise zipfile.BadZipFile("two of its parts have one name")
        self._archive = archive
        self.meta: Any = json.loads(archive.read("meta.json"))  # whatever was written: readers check it

    def verify(self) -> None:
        """Reads all parts against their checksums and digests; files of earlier versions have no digests."""
        names = self._archive.namelist()
        sums = json.loads(self._archive.read("sums.json")) if "sums.json" in names else None
        if sums is not None and sums.keys() != set(names) - {"sums.json"}:
            raise ValueError(f"it was written with other parts than {', '.join(names)}")
        for part in names:
            content = self._archive.read(part)
            if sums is not None and part in sums and hashlib.sha256(content).hexdigest() != sums[part]:
                raise ValueError(f"its part {part} is not the one that was written with the others")

    def array(self, number: int) -> np.ndarray:
        """The array `number`; its header must declare as many values as follow it."""
        if isinstance(number, bool) or not isinstance(number, int):
            raise TypeError(f"the number of an array is {number!r}")
        content = self._archive.read(f"{number}.npy")
        stream = io.BytesIO(content)
        version = np.lib.format.read_magic(stream)
        header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = header(stream)
        if dtype.hasobject or dtype.kind not in "biuf":
            raise ValueError(f"the array {number} has values of type {dtype}, which are not numbers")
        if math.prod(shape) * dtype.itemsize != len(content) - stream.tell():
            raise ValueError(f"the array {number} declares the shape {shape}, which its content does not have")
        return np.load(io.BytesIO(content), allow_pickle=False)
