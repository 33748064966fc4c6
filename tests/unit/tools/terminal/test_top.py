"""`barnabas top`: the screen of a snapshot, its keys, and one screen of a real cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from types import MappingProxyType
from typing import cast

import pytest
from rich.console import Console

from barnabas.console.cluster.sampler import Sampler
from barnabas.console.cluster.snapshot import BrokerSnapshot, ClusterSnapshot, GroupSnapshot, PartitionSnapshot, TopicSnapshot
from barnabas.testing import EmbeddedBroker, broker
from barnabas.tools import top
from barnabas.tools.terminal.top_view import SORTS, Rates, spark, view
from barnabas.topic_partition import TopicPartition


def topic(name: str, rate: float = 0, size: int = 0, lag: int = 0, isr: tuple[int, ...] = (1,)) -> TopicSnapshot:
    partition = PartitionSnapshot(0, 1, (1,), isr, 0, 10, size)
    return TopicSnapshot(name, False, "", (partition,), rate, rate * 100, None, None, None, None, ("g", lag) if lag else None)


def snapshot(*topics: TopicSnapshot) -> ClusterSnapshot:
    group = GroupSnapshot("billing", "consumer", "Stable", "range", 2, 1, 1234, {}, (TopicPartition("a", 0),))
    brokers = (BrokerSnapshot(1, "localhost", 9092, None, 1, 1, 5_000),)
    named = MappingProxyType({one.name: one for one in topics})
    return ClusterSnapshot("id", 1, brokers, named, MappingProxyType({"billing": group}), records_in_per_s=1_500, taken_ms=1)


def drawn(shown: ClusterSnapshot, sort: str = "rate", height: int | None = None) -> str:
    console = Console(width=120, height=50, color_system=None)
    with console.capture() as capture:
        console.print(view(shown, Rates((1, 2, 8)), sort, height))
    return capture.get()


def test_the_screen_has_health_rates_brokers_groups_and_topics() -> None:
    text = drawn(snapshot(topic("orders", 1_500, 20_000, 7)))
    for words in (
        "1 broker, 1 topic, 1 partition, controller 1",
        "1.5 k records/s",
        "localhost:9092",
        "billing",
        "1,234",
        "1 partition",
        "orders",
        "20 kB",
        "7 g",
        "▂▃█",
    ):
        assert words in text, words


def test_topics_are_sorted_by_what_was_chosen() -> None:
    shown = snapshot(topic("a", rate=1, size=3, lag=2), topic("b", rate=3, size=1, lag=1), topic("c", rate=2, size=2, lag=3))
    orders = {sort: "".join(line[0] for line in drawn(shown, sort).splitlines() if line[:2] in ("a ", "b ", "c ")) for sort in SORTS}
    assert orders == {"rate": "bca", "size": "acb", "lag": "cab", "name": "abc"}
    assert SORTS == top.SORTS


def test_a_screen_of_many_topics_shows_as_many_as_there_is_room_for() -> None:
    text = drawn(snapshot(*(topic(f"topic-{number:03}") for number in range(500))), height=30)
    assert "of 500" in text
    assert len(text.splitlines()) <= 30


def test_names_cannot_move_the_cursor_and_are_not_read_as_markup() -> None:
    text = drawn(snapshot(topic("a\x1b[2Jb"), topic("[red]c[/red]"), topic("x" * 249), topic("d\u202ee")))
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "[red]c[/red]" in text


def test_a_line_of_no_rates_is_empty() -> None:
    assert spark(()) == spark((0, 0)) == ""


def test_keys_sort_and_end() -> None:
    async def press() -> list[object]:
        screen = top.Screen(cast(Sampler, None), "rate")
        seen: list[object] = []
        for key in "ssrxq":
            screen.key(key)
            seen.append((screen.sort, screen.is_over))
        return seen

    expected = [("size", False), ("lag", False), ("size", False), ("size", False), ("size", True)]
    assert asyncio.run(press()) == expected


@pytest.fixture(scope="module")
def kafka() -> Generator[EmbeddedBroker, None, None]:
    with broker() as running:
        running.create_topic("orders", 3)
        yield running


def test_once_prints_one_screen_for_scripts(
    kafka: EmbeddedBroker, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(top, "_SAMPLES_OF_ONCE", 1)  # the first has no rates, and needs no wait
    assert top.main(["--once", "--bootstrap-server", kafka.bootstrap_servers]) == 0
    output = capsys.readouterr().out
    assert "All is well: 1 broker, 1 topic" in output
    assert "orders" in output
    assert "\x1b" not in output


def test_a_file_that_is_not_there_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert top.main(["--command-config", "/does/not/exist"]) != 0
    assert "/does/not/exist" in capsys.readouterr().err
