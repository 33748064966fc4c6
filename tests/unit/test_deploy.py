"""The systemd unit: what it restarts, and who may read what the broker writes."""

from __future__ import annotations

from pathlib import Path

from barnabas.file_modes import DIRECTORY_MODE, UMASK
from barnabas.tools.command_line.exit_codes import ExitCode

UNIT = Path(__file__).parents[2] / "deploy" / "barnabas.service"
FOR_GOOD = {ExitCode.INVALID_CONFIG, ExitCode.USAGE, ExitCode.DIRECTORY_IN_USE, ExitCode.FOREIGN_DIRECTORY}


def unit() -> dict[str, str]:
    return dict(line.split("=", 1) for line in UNIT.read_text().splitlines() if "=" in line and not line.startswith("#"))


def test_only_what_a_restart_cannot_mend_is_not_restarted() -> None:
    assert {ExitCode(int(code)) for code in unit()["RestartPreventExitStatus"].split()} == FOR_GOOD


def test_others_may_not_read_the_data() -> None:
    assert (int(unit()["UMask"], 8), int(unit()["StateDirectoryMode"], 8)) == (UMASK, DIRECTORY_MODE)
