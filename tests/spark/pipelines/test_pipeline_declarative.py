"""Our source and sink in Spark Declarative Pipelines: a project of all templates runs, and goes on where it was when it runs again."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from barnabas.tools.spark.pipeline_project import make_project, template_names
from tests.broker import TopicMaker
from tests.spark.command import TIMEOUT_S, run_pipeline
from tests.spark.topic_contents import Sent, read, send

NOON_MS = 1_763_294_400_000
MINUTE_MS = 60_000
TOPICS = (
    *("orders", "sales", "large-orders", "small-orders", "wrong-orders"),
    *("checked-orders", "products", "priced-orders", "customers"),
)


def with_topics(definitions: str, topics: Mapping[str, str]) -> str:
    """The definitions with topics of this test's own."""
    for name, own in topics.items():
        for before in ("SERVERS, ", "TOPICS = ", "otherwise=", "dead_letters=", "routes={"):
            definitions = definitions.replace(f'{before}"{name}"', f'{before}"{own}"')
    return definitions


def order(minute: int, product: str) -> Sent:
    return Sent(product, json.dumps({"product": product, "quantity": 2}), NOON_MS + minute * MINUTE_MS)


def product(name: str, price: float | None) -> Sent:
    return Sent(name, None if price is None else json.dumps({"price": price, "unit": "kg"}), NOON_MS)


def customer(key: str, name: str | None, city: str = "Ulm") -> Sent:
    return Sent(key, None if name is None else json.dumps({"id": key, "name": name, "city": city}), NOON_MS)


def table(project: Path, name: str) -> list[dict[str, Any]]:
    return [row for file in (project / "tables" / name).glob("*.parquet") for row in pq.read_table(file).to_pylist()]


def archived(project: Path) -> list[bytes]:
    return sorted(row["value"] for row in table(project, "archive"))


def customers(project: Path) -> list[tuple[str, str, str]]:
    return sorted((row["id"], row["name"], row["city"]) for row in table(project, "customers"))


def prices(records: list[Sent]) -> list[tuple[str | None, float | None]]:
    """In the order of keys: a join has none."""
    details = [(record.key, json.loads(record.value or "")["details"]) for record in records]
    return sorted(((key, None if each is None else each["price"]) for key, each in details), key=str)


@pytest.mark.timeout(2 * TIMEOUT_S + 20)
def test_a_project_runs_and_goes_on_where_it_was(our_broker: str, our_topic: TopicMaker, tmp_path: Path) -> None:
    topics = {name: our_topic(name) for name in TOPICS}
    project = make_project(tmp_path, "shop", "windows", our_broker)
    for template in template_names():
        made = project if template == "windows" else make_project(tmp_path, template, template, our_broker)
        # Orders that cannot be decoded would end the join: it gets others.
        own = topics | {"orders": topics["checked-orders"]} if template == "enrich" else topics
        definitions = Path("transformations", f"{template}.py")
        (project / definitions).write_text(with_topics((made / definitions).read_text(), own))

    first = [order(0, "apples"), order(0, "pears"), order(2, "apples"), Sent("x", "no JSON", NOON_MS)]
    send(our_broker, topics["orders"], first)
    send(our_broker, topics["checked-orders"], first[:2])
    send(our_broker, topics["products"], [product("apples", 1.5), product("pears", 2.0), product("apples", 1.6), product("pears", None)])
    send(our_broker, topics["customers"], [customer("1", "Ann"), customer("2", "Bob"), customer("1", "Anna"), customer("3", "Cyd")])
    ran = run_pipeline(project)
    assert ran.returncode == 0, ran.stderr
    assert "Run is COMPLETED." in ran.stdout
    assert re.search(r"^sales_by_minute: 4 rows in 2 batches, [\d.]+ rows/s, the slowest batch took [\d.]+ s$", ran.stdout, re.MULTILINE)
    assert "sales_by_minute: 1 group is in windows that are still open, which end after the watermark, 2025-11-16 12:01:50" in ran.stdout
    assert {record.key for record in read(our_broker, topics["sales"])} == {"apples", "pears", None}  # what is no JSON has no product
    assert [record.value for record in read(our_broker, topics["wrong-orders"])] == ["no JSON"]
    assert [record.key for record in read(our_broker, topics["small-orders"])] == ["apples", "pears", "apples"]
    assert archived(project) == sorted((record.value or "").encode() for record in first)
    assert prices(read(our_broker, topics["priced-orders"])) == [("apples", 1.6), ("pears", None)]
    assert customers(project) == [("1", "Anna", "Ulm"), ("2", "Bob", "Ulm"), ("3", "Cyd", "Ulm")]

    send(our_broker, topics["orders"], [order(5, "figs")])
    send(our_broker, topics["checked-orders"], [order(5, "pears")])
    send(our_broker, topics["products"], [product("pears", 2.5)])
    send(our_broker, topics["customers"], [customer("2", None), customer("3", "Cyd", "Bern")])
    ran = run_pipeline(project)
    assert ran.returncode == 0, ran.stderr
    minutes = [json.loads(record.value or "")["window_start"][14:16] for record in read(our_broker, topics["sales"])]
    assert sorted(minutes) == ["00", "00", "00", "02"]
    assert len(archived(project)) == 5
    assert len(read(our_broker, topics["small-orders"])) == 4
    assert prices(read(our_broker, topics["priced-orders"])) == [("apples", 1.6), ("pears", 2.5), ("pears", None)]
    assert customers(project) == [("1", "Anna", "Ulm"), ("3", "Cyd", "Bern")]
