"""Where the commands for a laptop keep their data if nothing else is said."""

from __future__ import annotations

import os

from barnabas.layout.errors import LayoutError
from barnabas.layout.layout import Layout
from barnabas.layout.layout_file import require_layout
from barnabas.storage.disk.files import Files
from barnabas.tools.command_line.exit_codes import CannotRun, ExitCode


def data_home() -> str:
    """XDG's place for the data of a user."""
    base = os.environ.get("XDG_DATA_HOME", "")
    return os.path.join(base if os.path.isabs(base) else os.path.expanduser("~/.local/share"), "barnabas")


def refuse_other_layout(data: str, layout: Layout) -> None:
    """Raises CannotRun where a data directory was made for another number of brokers."""
    try:
        require_layout(Files(), data, layout)
    except LayoutError as error:
        raise CannotRun(ExitCode.FOREIGN_DIRECTORY, str(error)) from error
