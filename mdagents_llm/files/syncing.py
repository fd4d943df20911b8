"""Fsync, where the file system has one."""

from __future__ import annotations

import errno
import os

_NOT_SUPPORTED = frozenset({errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP})
"""Error numbers of file systems without fsync: some on the network or in user space, such as CIFS
and shared folders of virtual machines."""


def sync(file: int) -> None:
    """Call fsync on a descriptor; where the file system has none, its own guarantees must do.

    Raises:
        OSError: The file cannot be synced, for example because the disk is full or broken.
    """
    try:
        os.fsync(file)
    except OSError as error:
        if error.errno not in _NOT_SUPPORTED:
            raise
