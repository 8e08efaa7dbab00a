"""Files of arrays and JSON in one zip: no pickle, nothing that runs."""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
import zipfile
from collections.abc import Iterable

import numpy as np


def write_archive(path: str | os.PathLike[str], meta: str, arrays: Iterable[np.ndarray]) -> None:
    """Writes `meta.json` and the arrays as `0.npy`, `1.npy`, ... The file is replaced as a whole or not at all."""
    folder, name = os.path.split(os.path.abspath(path))
    handle, draft = tempfile.mkstemp(prefix=name, dir=folder)
    try:
        with os.fdopen(handle, "wb") as file, zipfile.ZipFile(file, "w") as archive:
            archive.writestr("meta.json", meta)
            for number, array in enumerate(arrays):
                content = io.BytesIO()
                np.save(content, array, allow_pickle=False)
                archive.writestr(f"{number}.npy", content.getvalue())
        os.replace(draft, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.remove(draft)
        raise
