"""Which connection error goes into a Timeout, and how often it is warned about."""

from __future__ import annotations

import ast
import itertools
from pathlib import Path

import barnabas.client
from barnabas.client.errors import BufferExhausted, Disconnected, Timeout
from barnabas.client.network.connection_failures import SLOW_MS, ConnectionFailures
from barnabas.client.network.repeated_warnings import QUIET_MS_MAX, REASONS_MAX

GONE = Disconnected("a:1 (bootstrap.servers) refused the connection")


class Scene:
    def __init__(self) -> None:
        self.now_ms = 0
        self.failures = ConnectionFailures(lambda: self.now_ms)

    def warned_at(self, until_ms: int, every_ms: int = 1000) -> list[int]:
        """When a failure each second is warned about, in seconds."""
        times = []
        while self.now_ms <= until_ms:
            if self.failures.failed("a:1", GONE) is not None:
                times.append(self.now_ms // 1000)
            self.now_ms += every_ms
        return times


def test_the_same_failure_is_warned_about_with_back_off() -> None:
    assert Scene().warned_at(200_000) == [0, 10, 30, 70, 150]
    scene = Scene()
    times = scene.warned_at(10_000_000, 10_000)
    assert times[-1] - times[-2] == QUIET_MS_MAX // 1000


def test_a_warning_says_how_long_it_has_gone_on() -> None:
    scene = Scene()
    assert scene.failures.failed("a:1", GONE) == f"{GONE}; the client tries again"
    scene.now_ms = 10_000
    assert scene.failures.failed("a:1", GONE) == f"{GONE}; 2 attempts in 10 s failed"


def test_another_reason_is_warned_about_at_once_and_other_numbers_are_no_other_reason() -> None:
    failures = Scene().failures
    assert failures.failed("a:1", Timeout("a:1 (bootstrap.servers) did not answer within 10000 ms"))
    assert failures.failed("a:1", Timeout("a:1 (advertised.listeners of broker 3) did not answer within 19043 ms")) is None
    assert failures.failed("a:1", GONE)
    assert failures.failed("b:1", GONE)


def test_reasons_that_alternate_are_each_warned_about_with_back_off() -> None:
    scene = Scene()
    closed = Disconnected("a:1 (bootstrap.servers) closed the connection before it answered")
    warned: dict[Disconnected, list[int]] = {GONE: [], closed: []}
    for second in range(0, 200, 2):
        for error, at in ((GONE, second), (closed, second + 1)):
            scene.now_ms = 1000 * at
            if scene.failures.failed("a:1", error) is not None:
                warned[error].append(at)
    assert warned == {GONE: [0, 10, 30, 70, 150], closed: [1, 11, 31, 71, 151]}


def test_reasons_without_end_share_a_back_off() -> None:
    scene = Scene()
    reasons = ["".join(letters) for letters in itertools.product("abcdefgh", repeat=3)]
    warnings = [reason for reason in reasons if scene.failures.failed("a:1", Disconnected(reason))]
    assert warnings == reasons[: REASONS_MAX + 1]


def test_a_connection_that_is_ready_ends_it() -> None:
    failures = Scene().failures
    failures.failed("a:1", GONE)
    failures.connected("a:1")
    assert failures.last() is None and str(failures.timeout("Too late.")) == "Too late."
    assert failures.failed("a:1", GONE), "a new failure is news"


def test_the_last_of_several_is_told_until_it_is_over_or_its_broker_forgotten() -> None:
    failures = Scene().failures
    first, second = Disconnected("first"), Disconnected("second")
    failures.failed("a:1", first)
    failures.lost("b:1", second)
    assert failures.last() is second
    failures.connected("b:1")
    assert failures.last() is first
    failures.keep_only({"b:1"})
    assert failures.last() is None


def test_a_timeout_has_the_last_error_as_text_and_cause() -> None:
    failures = Scene().failures
    why = ValueError("asked for nothing")
    assert failures.timeout("Too late.", cause=why).__cause__ is why
    failures.failed("a:1", GONE)
    error = failures.error(BufferExhausted, "No memory.", cause=why)
    assert isinstance(error, BufferExhausted) and error.__cause__ is GONE
    assert str(error) == f"No memory; the last connection error: {GONE}"


def test_an_attempt_under_way_counts_once_it_has_taken_long() -> None:
    scene = Scene()
    scene.failures.begun("a:1", "a:1 (bootstrap.servers)")
    assert scene.failures.last() is None
    scene.now_ms = SLOW_MS
    assert str(scene.failures.last()) == "a:1 (bootstrap.servers) has not answered for 1000 ms: is a firewall in the way, or the host down?"
    scene.failures.accepted("a:1")
    assert (
        str(scene.failures.last())
        == "a:1 (bootstrap.servers) accepted a connection and has not answered for 1000 ms: is it a Kafka broker?"
    )
    scene.failures.given_up("a:1")
    assert scene.failures.last() is None


def test_clients_make_no_timeout_without_the_last_connection_error() -> None:
    """Only connection errors themselves, and what a thread that waits for another raises."""
    own = {"connection.py", "connection_failures.py", "handshake.py", "loop_thread.py"}
    root = Path(barnabas.client.__file__).parent
    assert {path.name for path in root.rglob("*.py") if makes_timeout(path)} == own


def makes_timeout(path: Path) -> bool:
    calls = [node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    return any(isinstance(called, ast.Name) and called.id in ("Timeout", "BufferExhausted") for called in calls)
