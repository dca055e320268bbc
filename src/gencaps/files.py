"""Files that are whole or not there: written beside, flushed to disk, then renamed into place."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gencaps.errors import GencapsError


def write_atomically(path: Path, content: bytes | str) -> None:
    """Writes a file so that whoever reads it, or kills us, never meets a half one."""
    data = content.encode() if isinstance(content, str) else content
    temporary: Path | None = None
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
            temporary = Path(file.name)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o644)  # a temporary file is readable by its owner alone
        temporary.replace(path)
    except OSError as error:
        raise GencapsError(f"cannot write {path}: {error.strerror or error}; {remedy(error)}") from None
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)  # nothing is left of it where it was renamed


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Waits until no other process works on a file or folder as it does here; where there are no locks, goes on."""
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_name(f".{path.name}.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the system lets go where the process ends, however it does
        yield


def remedy(error: OSError) -> str:
    """Says what to do about a failed write."""
    import errno

    if error.errno in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT):
        return "free some space and try again"
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return "choose a folder that you may write to"
    return "check the path"
