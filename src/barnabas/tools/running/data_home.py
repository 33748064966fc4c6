"""The default data directory of the commands for one machine (`up`, `demo`, `zookeeper`)."""

from __future__ import annotations

import os

from barnabas.layout.errors import LayoutError
from barnabas.layout.layout import Layout
from barnabas.layout.layout_file import require_layout
from barnabas.storage.disk.files import Files
from barnabas.tools.command_line.exit_codes import CannotRun, ExitCode


def data_home() -> str:
    """The XDG data directory of the user."""
    base = os.environ.get("XDG_DATA_HOME", "")
    return os.path.join(base if os.path.isabs(base) else os.path.expanduser("~/.local/share"), "barnabas")


def refuse_other_layout(data: str, layout: Layout) -> None:
    """Raises CannotRun if the data directory was created for another number of brokers."""
    try:
        require_layout(Files(), data, layout)
    except LayoutError as error:
        raise CannotRun(ExitCode.FOREIGN_DIRECTORY, str(error)) from error
