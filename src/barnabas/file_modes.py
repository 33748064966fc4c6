"""The permissions of what a broker makes on disk: its user may write, its group may read, others may do neither."""

from __future__ import annotations

import os
from typing import Final

FILE_MODE: Final = 0o640
DIRECTORY_MODE: Final = 0o750
UMASK: Final = 0o027  # takes from a file or directory what these two do not allow


def keep_files_private() -> None:
    """For whatever this process and its children make from here on. A stricter umask stays as it is."""
    os.umask(UMASK | os.umask(UMASK))
