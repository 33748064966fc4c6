"""When a process of the machine starts again, when it hangs, when all are ready, and when a start has failed."""

from __future__ import annotations

from barnabas.tools.processes.machine import Machine
from barnabas.tools.processes.machine_listener import metrics_text, readiness
from barnabas.tools.processes.messages import Announcement
from barnabas.tools.processes.process_life import PAUSE_MS, PAUSE_MS_MAX, SILENCE_MS_MAX, STABLE_MS, LifeState, ProcessLife


def announcement(node_id: int = 1) -> Announcement:
    return Announcement(node_id, "id", [f"PLAINTEXT://:{9091 + node_id}"], [f"host:{9091 + node_id}"], f"http://localhost:{9403 + node_id}")


def machine(processes: int = 2) -> Machine:
    made = Machine({number: number + 10 for number in range(1, processes + 1)})
    for life in made.lives.values():
        life.started(100 + life.number)
    return made


def all_ready(processes: int = 2) -> Machine:
    made = machine(processes)
    for life in made.lives.values():
        life.announced(announcement(life.node_id), 0)
    assert made.ready() is not None
    return made


def test_a_process_that_ends_again_and_again_waits_longer_each_time() -> None:
    life = ProcessLife(1, 1)
    pauses = []
    for start in range(12):
        life.started(start)
        pauses.append(life.ended(-9, start))
    assert pauses[:3] == [PAUSE_MS, 2 * PAUSE_MS, 4 * PAUSE_MS]
    assert pauses[-1] == PAUSE_MS_MAX
    assert (life.state, life.restarts) == (LifeState.WAITING, 12)


def test_a_process_that_was_ready_for_a_while_starts_again_at_once() -> None:
    life = ProcessLife(1, 1)
    now_ms = 0
    for start in range(20):
        life.started(start)
        life.announced(announcement(), now_ms)
        now_ms += STABLE_MS
        assert life.ended(-9, now_ms) == PAUSE_MS


def test_a_process_that_was_ready_only_briefly_waits_longer() -> None:
    life = ProcessLife(1, 1)
    pauses = []
    for start in range(3):
        life.started(start)
        life.announced(announcement(), 0)
        pauses.append(life.ended(-9, STABLE_MS - 1))
    assert pauses == [PAUSE_MS, 2 * PAUSE_MS, 4 * PAUSE_MS]


def test_silence_is_a_hang_only_after_the_start() -> None:
    life = ProcessLife(1, 1)
    life.started(5)
    assert not life.is_hanging(100 * SILENCE_MS_MAX)
    life.announced(announcement(), 0)
    life.reported("", 1000)
    assert not life.is_hanging(1000 + SILENCE_MS_MAX)
    assert life.is_hanging(1001 + SILENCE_MS_MAX)


def test_the_machine_is_ready_when_each_process_is() -> None:
    made = machine()
    made.lives[2].announced(announcement(12), 0)
    assert made.ready() is None
    made.lives[1].announced(announcement(11), 0)
    ready = made.ready()
    assert ready is not None
    assert (ready.node_ids, ready.cluster_id, ready.bootstrap) == ([11, 12], "id", "host:9102,host:9103")
    assert ready.listeners == ["PLAINTEXT://:9102", "PLAINTEXT://:9103"]
    assert len(ready.metrics) == 2


def test_the_first_start_fails_with_a_process_that_says_why_it_cannot_run() -> None:
    made = machine()
    assert made.is_start_hopeless(made.lives[1], 3)
    assert made.is_start_hopeless(made.lives[1], None)
    assert not made.is_start_hopeless(made.lives[1], -9)


def test_later_every_process_starts_again_whatever_it_ended_with() -> None:
    made = all_ready()
    life = made.lives[1]
    life.ended(1, 0)
    life.started(7)
    assert not made.is_start_hopeless(life, 1)
    assert not made.is_start_hopeless(life, None)


def test_a_parent_that_was_suspended_reads_the_reports_before_it_calls_a_process_hanging() -> None:
    made = all_ready()
    late_ms = 2 * SILENCE_MS_MAX
    assert made.hanging(10_000) == []
    assert made.hanging(late_ms) == []
    made.lives[1].reported("", late_ms + 1)
    assert made.hanging(late_ms + 10_000) == [made.lives[2]]


def test_the_status_names_the_parts_that_are_not_ready() -> None:
    made = all_ready(3)
    assert made.status() == "3 of 3 brokers ready"
    made.lives[1].reported("no log directory works", 1)
    made.lives[2].ended(-9, 1)
    assert made.status() == "1 of 3 brokers ready; node 11: no log directory works; node 12: it ended by signal 9"


def test_the_health_of_the_machine_is_that_of_its_parts() -> None:
    made = all_ready(2)
    assert readiness(made)["status"] == "good"
    made.lives[2].ended(-9, 1)
    assert readiness(made) == {
        "status": "bad",
        "problems": ["node 12: it ended by signal 9"],
        "brokers": {"11": "", "12": "it ended by signal 9"},
    }
    lines = metrics_text(made).splitlines()
    assert 'barnabas_process_up{node_id="11"} 1' in lines
    assert 'barnabas_process_ready{node_id="12"} 0' in lines
    assert 'barnabas_process_restarts_total{node_id="12"} 1' in lines


def test_a_store_that_cannot_save_changes_is_a_problem_of_the_machine() -> None:
    made = all_ready(2)
    made.store_problem = lambda: "the disk is full"
    assert (readiness(made)["status"], made.status()) == ("bad", "2 of 2 brokers ready; the disk is full")


def test_the_first_process_stops_last() -> None:
    assert machine(3).stop_order() == [3, 2, 1]
