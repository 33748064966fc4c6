"""The name and version that a client sends in ApiVersions requests and reports in its metrics."""

from __future__ import annotations

from typing import Final

SOFTWARE_NAME: Final = "barnabas-python"
SOFTWARE_VERSION: Final = "0.2.0"  # of pyproject.toml; tests/unit/test_version.py compares them
