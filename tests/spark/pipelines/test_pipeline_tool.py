"""`barnabas pipeline` where something is wrong: what its user is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.tools.spark.pipeline_project import make_project
from tests.broker import TopicMaker
from tests.spark.command import TIMEOUT_S, barnabas, run_pipeline


@pytest.mark.timeout(TIMEOUT_S + 20)
def test_definitions_that_are_wrong_end_with_what_spark_says(tmp_path: Path) -> None:
    assert barnabas(tmp_path, "pipeline", "new", "wrong").returncode == 0
    (tmp_path / "wrong" / "transformations" / "windows.py").write_text("raise ValueError('no such shop')\n")
    ran = run_pipeline(tmp_path / "wrong", "--dry-run")
    assert ran.returncode == 1
    assert "barnabas: the pipeline failed; the end of what Spark printed:" in ran.stderr
    assert "ValueError: no such shop" in ran.stderr


@pytest.mark.timeout(TIMEOUT_S + 20)
def test_a_missing_topic_is_one_line_that_says_what_to_do(our_broker: str, our_topic: TopicMaker, tmp_path: Path) -> None:
    project = make_project(tmp_path, "shop", "windows", our_broker)
    missing = f"{our_topic('there')}-not"
    definitions = project / "transformations" / "windows.py"
    definitions.write_text(definitions.read_text().replace('"orders", options', f'"{missing}", options'))
    ran = run_pipeline(project)
    assert ran.returncode == 1
    assert ran.stderr == (
        f"barnabas: flow sales_by_minute: Option 'subscribe': there is no topic {missing} on the cluster at {our_broker}. Create it "
        f"(barnabas topics --bootstrap-server {our_broker} --create --topic {missing}), or correct the name; topics that come later are "
        "found by 'subscribePattern'.\n"
    )
    assert "COMPLETED" not in ran.stdout
    assert ran.stdout.count("STARTING") == 1
