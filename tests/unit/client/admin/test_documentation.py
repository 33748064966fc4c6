"""What docs/admin.md says of the admin client's methods."""

from __future__ import annotations

import re
from pathlib import Path

from barnabas.client.admin import Admin

PAGE = Path(__file__).parents[4] / "docs" / "admin.md"
CALL = re.compile(r"`([a-z_]+)\(")


def test_every_method_in_the_last_column_is_there() -> None:
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    named = {name for row in rows for name in CALL.findall(row.rstrip(" |").rpartition(" | ")[2])}
    assert len(named) > 30
    assert {name for name in named if not hasattr(Admin, name)} == set()
