"""The server's folder and its files, which nobody else may have prepared.

Who can write to the folder could put a link there, and have the server write to what it leads
to. So the folder must be this user's own; files in it are opened without following links, and
only if they are regular: a pipe would block, and the LED with it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from pathlib import Path

from influx_drone.errors import DroneError

PRIVATE_FOLDER, PRIVATE_FILE = 0o700, 0o600
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def own_folder(path: Path) -> None:
    """Make a folder that only this user can enter; one that is there must be this user's.

    Raises ``DroneError`` if another user owns it or may have written to it.
    """
    try:
        path.mkdir(parents=True, exist_ok=True, mode=PRIVATE_FOLDER)
        found = path.lstat()
    except OSError as error:
        raise DroneError(f"{path} cannot be made a folder: {error.strerror}.") from None
    if not stat.S_ISDIR(found.st_mode):
        raise DroneError(f"{path} is a link: name the folder itself.")
    if found.st_uid != os.geteuid():
        raise DroneError(
            f"{path} belongs to user {found.st_uid}, not to this one ({os.geteuid()}): name a "
            "folder of your own with --state."
        )
    if found.st_mode & OTHERS_WRITE:
        raise DroneError(
            f"{path} can be written by other users (mode {stat.S_IMODE(found.st_mode):04o}), who "
            "may have put files there. Look into it, then: chmod 700 it; or name another folder "
            "with --state."
        )
    try:
        path.chmod(PRIVATE_FOLDER)
    except OSError as error:
        raise DroneError(f"{path} cannot be made private: {error.strerror}.") from None


def opened(path: Path, flags: int) -> int:
    """A descriptor of a regular file, private, which is made if it is not there."""
    flags |= os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags, PRIVATE_FILE)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise DroneError(f"{path} is a link, which is not followed: remove it.") from None
        if error.errno == errno.ENXIO:
            raise DroneError(f"{path} is a pipe, not a file: remove it.") from None
        raise DroneError(f"{path} cannot be opened: {error.strerror}.") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise DroneError(f"{path} is not a regular file: remove it.")
    with contextlib.suppress(OSError):
        # Earlier releases left it readable; a disk without modes has none to set.
        os.fchmod(descriptor, PRIVATE_FILE)
    return descriptor


def replace_file(path: Path, content: bytes) -> None:
    """Write a private file, whole or not at all; raises OSError."""
    temporary = path.with_suffix(".tmp")
    temporary.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(temporary, flags, PRIVATE_FILE), "wb") as file:
        file.write(content)
    os.replace(temporary, path)
