"""`barnabas pipeline` where something is wrong: what its user is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spark.command import TIMEOUT_S, barnabas, run_pipeline


@pytest.mark.timeout(TIMEOUT_S + 20)
def test_definitions_that_are_wrong_end_with_what_spark_says(tmp_path: Path) -> None:
    assert barnabas(tmp_path, "pipeline", "new", "wrong").returncode == 0
    (tmp_path / "wrong" / "transformations" / "windows.py").write_text("raise ValueError('no such shop')\n")
    ran = run_pipeline(tmp_path / "wrong", "--dry-run")
    assert ran.returncode == 1
    assert "barnabas: the pipeline failed; the end of what Spark printed:" in ran.stderr
    assert "ValueError: no such shop" in ran.stderr
