"""Our source and sink in Spark Declarative Pipelines: a project of all templates runs, and goes on where it was when it runs again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.broker import TopicMaker
from tests.spark.command import TIMEOUT_S, barnabas, run_pipeline
from tests.spark.topic_contents import Sent, read, send

NOON_MS = 1_763_294_400_000
MINUTE_MS = 60_000
TOPICS = ("orders", "sales", "large-orders", "small-orders", "wrong-orders")


def with_topics(definitions: str, topics: Mapping[str, str]) -> str:
    """The definitions with topics of this test's own."""
    for name, own in topics.items():
        for before in ("SERVERS, ", "TOPICS = ", "otherwise=", "dead_letters=", "routes={"):
            definitions = definitions.replace(f'{before}"{name}"', f'{before}"{own}"')
    return definitions


def order(minute: int, product: str) -> Sent:
    return Sent(product, json.dumps({"product": product, "quantity": 2}), NOON_MS + minute * MINUTE_MS)


def archived(project: Path) -> list[bytes]:
    return sorted(value.as_py() for file in (project / "tables" / "archive").glob("*.parquet") for value in pq.read_table(file)["value"])


@pytest.mark.timeout(2 * TIMEOUT_S + 20)
def test_a_project_runs_and_goes_on_where_it_was(our_broker: str, our_topic: TopicMaker, tmp_path: Path) -> None:
    topics = {name: our_topic(name) for name in TOPICS}
    orders, sales = topics["orders"], topics["sales"]
    project = tmp_path / "shop"
    assert barnabas(tmp_path, "pipeline", "new", "shop", "--bootstrap-server", our_broker).returncode == 0
    for template in ("archive", "route"):
        assert barnabas(tmp_path, "pipeline", "new", template, "--template", template).returncode == 0
        (tmp_path / template / "transformations" / f"{template}.py").rename(project / "transformations" / f"{template}.py")
    for file in (project / "transformations").iterdir():
        file.write_text(with_topics(file.read_text(), topics))

    first = [order(0, "apples"), order(0, "pears"), order(2, "apples"), Sent("x", "no JSON", NOON_MS)]
    send(our_broker, orders, first)
    ran = run_pipeline(project)
    assert ran.returncode == 0, ran.stderr
    assert "Run is COMPLETED." in ran.stdout
    assert {record.key for record in read(our_broker, sales)} == {"apples", "pears", None}  # what is no JSON has no product
    assert [record.value for record in read(our_broker, topics["wrong-orders"])] == ["no JSON"]
    assert [record.key for record in read(our_broker, topics["small-orders"])] == ["apples", "pears", "apples"]
    assert archived(project) == sorted((record.value or "").encode() for record in first)

    send(our_broker, orders, [order(5, "figs")])
    ran = run_pipeline(project)
    assert ran.returncode == 0, ran.stderr
    minutes = [json.loads(record.value or "")["window_start"][14:16] for record in read(our_broker, sales)]
    assert sorted(minutes) == ["00", "00", "00", "02"]
    assert len(archived(project)) == 5
    assert len(read(our_broker, topics["small-orders"])) == 4
