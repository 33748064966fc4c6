"""Where the commands for a laptop keep their data if nothing else is said."""

from __future__ import annotations

import os


def data_home() -> str:
    """XDG's place for the data of a user."""
    base = os.environ.get("XDG_DATA_HOME", "")
    return os.path.join(base if os.path.isabs(base) else os.path.expanduser("~/.local/share"), "barnabas")
