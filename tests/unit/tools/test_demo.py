"""The parts of `barnabas demo` that decide: how many orders are due, what is counted, what is shown."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas import testing
from barnabas.client import Consumer, Producer, TopicPartition
from barnabas.tools import demo
from barnabas.tools.running import process_memory
from barnabas.tools.spark.demo_orders import AHEAD_MAX, PRODUCTS, Pace, Shop, made_up_orders
from barnabas.tools.spark.demo_screen import Figures, Tally, line, screen


@given(rate=st.integers(0, 10**6), total=st.integers(0, 10**7), sent=st.integers(0, 10**7), seconds=st.floats(0, 1000))
def test_orders_never_exceed_rate_total_or_what_may_wait(rate: int, total: int, sent: int, seconds: float) -> None:
    processed = max(0, sent - AHEAD_MAX // 2)
    due = Pace(rate, total).due(seconds, sent, processed)
    assert due >= 0
    if due:
        assert sent + due - processed <= AHEAD_MAX
        assert not total or sent + due <= total
        assert not rate or sent + due <= seconds * rate


def test_orders_are_due_at_the_rate() -> None:
    assert Pace(1000, 0).due(2.5, 2000, 2000) == 500


def test_orders_wait_for_those_who_read_them() -> None:
    assert Pace(0, 0).due(1.0, sent=AHEAD_MAX, processed=0) == 0
    assert Pace(0, 0).due(1.0, sent=AHEAD_MAX, processed=10) == 10


def test_a_demo_without_an_end_is_never_over() -> None:
    assert not Pace(10, 0).is_over(10**9)
    assert Pace(10, 5).is_over(5)


def test_the_record_that_closes_the_windows_is_not_counted_as_an_order() -> None:
    with testing.broker(topics=["orders"]) as broker, Producer(bootstrap_servers=broker.bootstrap_servers) as producer:
        shop = Shop(producer, "orders", Pace(0, 700))
        assert shop.orders_among(300) == 300
        shop.start()
        keys = keys_until_closing_time(broker.bootstrap_servers)
        shop.stop()
    assert (shop.sent, len(keys)) == (700, 701)
    assert shop.orders_among(701) == 700


def keys_until_closing_time(servers: str) -> list[bytes | None]:
    keys: list[bytes | None] = []
    deadline = time.monotonic() + 60
    with Consumer(bootstrap_servers=servers) as consumer:
        consumer.assign([TopicPartition("orders", 0)])
        consumer.seek_to_beginning([TopicPartition("orders", 0)])
        while b"closing time" not in keys:
            assert time.monotonic() < deadline
            keys += [record.key for record in consumer.poll(1.0)]
    return keys


def test_orders_are_json_of_known_products() -> None:
    orders = [json.loads(value) for _, value in made_up_orders(random.Random(3))]
    assert {order["product"] for order in orders} == set(PRODUCTS)
    assert all(1 <= order["quantity"] <= 9 for order in orders)


def test_a_tally_forgets_old_windows_and_keeps_their_sum() -> None:
    tally = Tally()
    for minute in range(50):
        tally.add({"window_start": f"2026-11-16T12:{minute:02d}:00.000Z", "product": "figs", "orders": 2})
    assert tally.counted == 100
    assert len(tally.windows) == 32
    assert min(tally.windows) == "2026-11-16T12:18:00.000Z"


def test_a_window_in_a_pipe_is_a_line() -> None:
    assert line("2026-11-16T12:00:05.000Z", {"wine": 1200, "figs": 3}) == "12:00:05  1,203 orders: figs 3, wine 1,200"


def test_the_screen_shows_figures_and_the_last_windows() -> None:
    tally = Tally()
    tally.add({"window_start": "2026-11-16T12:00:05.000Z", "product": "figs", "orders": 12})
    shown = screen(["about"], Figures(sent=5000, processed=3000, rows_per_s=1500.4, batch_s=1.25, memory=3 * 1024**2), tally)
    assert "sent 5,000   processed 3,000   1,500 rows/s   lag 2,000   batch 1.2 s   memory 3.0 MB" in shown
    assert shown.splitlines()[-1].split() == ["12:00:05", "0", "0", "0", "12", "0", "0", "0", "0", "12"]


def test_before_the_first_window_the_screen_says_what_is_waited_for() -> None:
    assert "the first window closes" in screen([], Figures(), Tally())


@pytest.mark.parametrize("wrong", [["--records", "-1"], ["--rate", "-5"], ["--records", "many"]])
def test_a_number_that_makes_no_sense_is_refused(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        demo.main(wrong)
    assert refused.value.code == 2
    assert "usage: barnabas demo" in capsys.readouterr().err


def test_a_directory_with_something_in_it_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "something").touch()
    with pytest.raises(demo.DemoFailed, match="is not empty; name a new directory with --data"), demo._directory(str(tmp_path)):
        pass


def test_a_directory_that_nobody_asked_for_is_gone_afterwards() -> None:
    with demo._directory(None) as directory:
        assert directory.is_dir()
    assert not directory.exists()


@pytest.mark.linux
def test_memory_is_that_of_a_process_and_its_children() -> None:
    alone = process_memory.tree_bytes(os.getpid())
    command = [sys.executable, "-c", "held = b'x' * 50_000_000; print(flush=True); input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        together = process_memory.tree_bytes(os.getpid())
        child.communicate(b"\n")
    assert alone is not None and together is not None
    assert together - alone > 40_000_000
