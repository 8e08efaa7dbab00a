"""Programs in a folder of the user, so that the next process need not trace and compile what this one has.

They are ours alone: JAX's own cache of compiled programs, which is one setting for all code of a process, is not
touched; where a user has switched that on, this one rests (an executable that came out of it cannot be written down
again). A file holds an executable (`executables`) or what NumPy runs (`listed`), behind a checksum; its name is made
of the structure of the program, the shapes of its arguments, and all that decides how it is compiled (the releases of
JAX, NumPy and of this package to the last changed file, the processor, settings). One that cannot be read is made anew.
The folder is CAVITY_CACHE, or `cavity` in the user's cache folder; CAVITY_CACHE=off keeps nothing. Only programs for
processors are kept, which is what was tried.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import pathlib
import pickle
import platform
import sys
import tempfile
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import jax
import jaxlib.version
import numpy as np

from ...factors.calls import call_checked
from ...factors.errors import DataError, ModelError

LARGEST = 2**29  # bytes in the folder
LEAST = 2**16  # bytes that a file counts for, so that there are at most 8,192
SHARE = 2**23  # bytes that a process writes before it looks through the folder again
SUFFIX = ".program"
Out = TypeVar("Out")
PACKAGE, ROOMS = pathlib.Path(__file__).parents[2], ("factors", "compiler", "engine", "models")

_unseen = [SHARE]  # bytes that were written since the folder was looked through, which it is at first
_chosen: list[pathlib.Path | None] = []  # by `cache`, at most one


@call_checked
def cache(folder: str | os.PathLike[str] | None) -> None:
    """Keeps programs in `folder` from now on, or nowhere where that is None.

    Without this call the folder is that of the environment variable CAVITY_CACHE ("off" for none), or else `cavity` in
    the user's cache folder. It is made where it is not there, holds at most 512 MiB (what was used the longest ago goes
    first), and may be deleted at any time. Whoever can write to it can run code as its reader: it must belong to the
    user, else DataError. DataError where it cannot be made, ModelError for what is no path.
    """
    if folder is None:
        _chosen[:] = [None]
        return
    if not isinstance(folder, (str, os.PathLike)):
        raise ModelError(f"cv.cache(folder) takes the path of a folder, or None to keep nothing; found {folder!r}.")
    path = pathlib.Path(folder).expanduser()
    problem = _problem(path)
    if problem:
        raise DataError(
            f"cv.cache({str(folder)!r}): {problem}. Compiled programs are code that later processes run. Give a folder "
            "of your own, or None to keep nothing."
        )
    _chosen[:] = [path]


def settings() -> tuple[Any, ...]:
    """Settings of JAX that decide what a program computes, and may change in a process."""
    return (
        jax.config.jax_default_matmul_precision,  # type: ignore[attr-defined]
        jax.config.jax_default_prng_impl,  # type: ignore[attr-defined]
        jax.config.jax_threefry_partitionable,  # type: ignore[attr-defined]
        jax.default_backend(),
    )


def name_of(digest: bytes, types: tuple[Any, ...]) -> str:
    """The name of a program on disk."""
    words = digest.hex(), repr(types), repr(settings()), _surroundings()
    return hashlib.sha256("\n".join(words).encode()).hexdigest()


def read(name: str, load: Callable[[Any], Out]) -> Out | None:
    """What `load` makes of the things kept under this name; None where there are none that can be read."""
    path = _path(name)
    if path is None:
        return None
    try:
        content = memoryview(path.read_bytes())
        if hashlib.sha256(content[32:]).digest() != content[:32]:
            raise ValueError("not what was written")
        found = load(pickle.loads(content[32:]))
        os.utime(path)  # used now
    except FileNotFoundError:
        return None
    except Exception:  # whatever is wrong with a file of a cache: it is made anew
        forget(name)
        return None
    return found


def forget(name: str) -> None:
    """Deletes what is kept under this name."""
    path = _path(name)
    if path is not None:
        with contextlib.suppress(OSError):
            path.unlink()


def write(name: str, things: Callable[[], Any]) -> None:
    """Keeps the things that are given, plain data, under this name; nothing where that cannot be done."""
    path = _path(name)
    if path is None:
        return
    with contextlib.suppress(Exception):  # a full disk, what has no text: the answer does not depend on it
        content = pickle.dumps(things(), pickle.HIGHEST_PROTOCOL)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(hashlib.sha256(content).digest() + content)
        os.replace(file.name, path)  # at once: another process sees all of it or nothing
        _unseen[0] += max(len(content), LEAST)
        if _unseen[0] > SHARE:
            _unseen[0] = 0
            _trim(path.parent)


def kept() -> tuple[pathlib.Path | None, int, int]:
    """The folder, how many programs are in it, and their bytes; no folder where nothing is kept."""
    folder = _folder()
    sizes = [] if folder is None else [path.stat().st_size for path in folder.glob(f"*{SUFFIX}")]
    return folder, len(sizes), sum(sizes)


def clear() -> int:
    """Removes the programs of the folder; returns how many there were."""
    folder = _folder()
    paths = [] if folder is None else list(folder.glob(f"*{SUFFIX}"))
    for path in paths:
        path.unlink(missing_ok=True)
    return len(paths)


def _path(name: str) -> pathlib.Path | None:
    if jax.default_backend() != "cpu" or jax.config.jax_compilation_cache_dir:  # type: ignore[attr-defined]
        return None
    folder = _folder()
    return None if folder is None else folder / f"{name}{SUFFIX}"


def _folder() -> pathlib.Path | None:
    if _chosen:
        return _chosen[0]
    named = os.environ.get("CAVITY_CACHE", "")
    if named.lower() in ("off", "0", "none"):
        return None
    path = pathlib.Path(named).expanduser() if named else _users_folder() / "cavity"
    return path if _problem(path) is None else None


def _users_folder() -> pathlib.Path:
    """Where programs of this system keep what they can make again."""
    home = pathlib.Path.home()
    if sys.platform == "darwin":
        return home / "Library" / "Caches"
    if sys.platform == "win32":
        return pathlib.Path(os.environ.get("LOCALAPPDATA", home / "AppData" / "Local"))
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")


@functools.lru_cache(maxsize=8)
def _problem(path: pathlib.Path) -> str | None:
    """Why a folder cannot hold programs; None when it can. It is made where it is not there."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = path.stat()
    except OSError as problem:
        return f"the folder cannot be made ({problem.strerror or problem})"
    if hasattr(os, "getuid") and (status.st_uid != os.getuid() or status.st_mode & 0o022):
        return "the folder belongs to somebody else, or others may write to it"
    return None if os.access(path, os.W_OK) else "the folder cannot be written to"


def _trim(folder: pathlib.Path) -> None:
    """Deletes what was used the longest ago, until the folder is small enough."""
    files = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(SUFFIX):
                with contextlib.suppress(OSError):  # another process may be first
                    status = entry.stat()
                    files.append((status.st_mtime, max(status.st_size, LEAST), entry.path))
    total = sum(size for _, size, _ in files)
    for _, size, path in sorted(files):
        if total <= LARGEST:
            return
        with contextlib.suppress(OSError):
            os.unlink(path)
        total -= size


@functools.cache
def _surroundings() -> str:
    """All that decides how programs are compiled, beside settings that may change in a process."""
    import scipy  # here: it takes a while, and is not needed without a folder

    ours = sorted(seen for room in ROOMS for seen in _files(PACKAGE / room))
    device = jax.devices()[0]
    releases = jax.__version__, jaxlib.version.__version__, np.__version__, scipy.__version__
    words = *releases, platform.platform(), _processor(), device.device_kind
    return repr((words, os.environ.get("XLA_FLAGS", ""), ours))


def _files(folder: str | os.PathLike[str]) -> Iterator[tuple[str, int, int]]:
    """Every file of Python in a folder, with its size and the time of its last change."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _files(entry)
            elif entry.name.endswith(".py"):
                status = entry.stat()
                yield entry.path, status.st_size, status.st_mtime_ns


def _processor() -> str:
    """What the processor can do: a program for one that can do more would crash."""
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
        return "\n".join(sorted({line for line in lines if line.startswith(("flags", "model name", "Features"))}))
    except OSError:
        return platform.processor()
