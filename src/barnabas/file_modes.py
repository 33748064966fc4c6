"""The permissions of files and directories that a broker creates: its user may write, its group may read, others may do neither."""

from __future__ import annotations

import os
from typing import Final

FILE_MODE: Final = 0o640
DIRECTORY_MODE: Final = 0o750
UMASK: Final = 0o027  # removes all permissions that these two do not have


def keep_files_private() -> None:
    """Sets the umask for all files that this process and its children create from now on. A stricter umask is kept."""
    os.umask(UMASK | os.umask(UMASK))
