"""Whoever is killed when, each row that went in comes out exactly once for read_committed readers.

`make test` kills three: a driver, an executor, the broker. `make spark-crash KILLS=50 SEED=7` goes on for longer, at random.
"""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import pytest

from tests import kafka
from tests.chaos import topics
from tests.chaos.mortal import MortalBroker, mortal
from tests.spark_crash.processes import Application, Kind

SCRIPT = Path(__file__).with_name("pipeline.py")
SOURCE, TARGET = "source", "target"
PARTITIONS = 2
ROWS_AT_ONCE = 300  # of each partition; put in again when all are through and there is still somebody to kill
CLUSTER = "local-cluster[2,1,512]"  # executors in processes of their own
STEP_S = 0.25
START_TIMEOUT_S = 600
END_TIMEOUT_S = 1200
TRIES_MAX = 8
FEW = 3  # kills, of each kind one

pytestmark = [pytest.mark.java, pytest.mark.timeout(14_400)]


def kills() -> int:
    return int(os.environ.get("BARNABAS_SPARK_CRASH_KILLS", "3"))


def seed() -> int:
    return int(os.environ.get("BARNABAS_SPARK_CRASH_SEED", "1"))


@pytest.mark.parametrize("kind", ["barnabas", "kafka"])
def test_every_row_comes_out_once(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("BARNABAS_CHAOS_BROKER", kind)
    if kind == "kafka":
        kafka.available(kafka.prepare)
    data = tmp_path / "data"
    data.mkdir()
    with mortal(data) as broker, (tmp_path / "pipeline.log").open("w") as output:
        topics.make_topics(broker.bootstrap, [SOURCE, TARGET], PARTITIONS)
        chance = random.Random(f"{seed()} {kind}")
        crash = Crash(broker, tmp_path, output, chance, lambda line: _tell(capfd, f"{kind}: {line}"))
        crash.run(kills())
        seen = Counter(value for some in topics.values(broker.bootstrap, TARGET, PARTITIONS, topics.COMMITTED) for value in some)
        assert seen == Counter({f"seen {number}": PARTITIONS for number in range(crash.rows)}), crash.history
        assert sum(crash.killed.values()) == kills()
        counts = ", ".join(f"{count} of the {victim}" for victim, count in sorted(crash.killed.items()))
        crash.tell(f"{counts}; {crash.batches()} batches; {seen.total()} records came out, each of {PARTITIONS * crash.rows} once")


def _tell(capfd: pytest.CaptureFixture[str], line: str) -> None:
    """Long forms are watched: each step is shown when it is made."""
    if kills() > FEW:
        with capfd.disabled():
            print(f"{time.strftime('%H:%M:%S')} {line}", flush=True)


class Crash:
    """Starts the pipeline again and again, and kills something of it or below it as often as it is told to."""

    def __init__(self, broker: MortalBroker, directory: Path, output: IO[str], chance: random.Random, tell: Callable[[str], None]) -> None:
        self._broker = broker
        self._directory = directory
        self._output = output
        self._chance = chance
        self.tell = tell
        self.rows = 0
        self.killed: Counter[str] = Counter()
        self.history: list[str] = []

    def run(self, count: int) -> None:
        self._fill()
        victims = self._victims(count)
        victim = next(victims, None)
        failures = 0
        while True:
            application = self._start()
            try:
                self._wait_until_begun(application)
                while victim is not None and self._strike(application, victim):
                    victim = next(victims, None)
                code = self._end_of(application) if victim is None else application.ended()
            finally:
                application.close()
            self._note(f"ended with {code}")
            if code == 0 and victim is None:
                return
            if code == 0:
                self._fill()
            failures = failures + 1 if code not in (0, -9) else 0
            assert failures < TRIES_MAX, f"the pipeline does not recover: {self.history}\n{self._log_end()}"

    def _victims(self, count: int) -> Iterator[str]:
        few, many = ["driver", "executor", "broker"], ["driver", "driver", "executor", "executor", "worker", "broker"]
        for number in range(count):
            yield few[number % len(few)] if count <= FEW else self._chance.choice(many)

    def _fill(self) -> None:
        """The same numbers in every partition."""
        for partition in range(PARTITIONS):
            fill(self._broker.bootstrap, partition, range(self.rows, self.rows + ROWS_AT_ONCE))
        self.rows += ROWS_AT_ONCE

    def _start(self) -> Application:
        arguments = [self._broker.bootstrap, SOURCE, TARGET, "crash", str(self._directory), CLUSTER]
        return Application(SCRIPT, arguments, self._output, self._directory / "home")

    def _wait_until_begun(self, application: Application) -> None:
        """Until it has committed a batch, or sometimes only until tasks run, which may be those of a batch that comes again."""
        deadline = time.monotonic() + START_TIMEOUT_S
        committed = self._committed()
        needs_batch = self._chance.random() < 0.7
        while application.ended() is None:
            if self._committed() > committed if needs_batch else application.processes(Kind.WORKER):
                return
            assert time.monotonic() < deadline, f"Spark did not start:\n{self._log_end()}"
            time.sleep(STEP_S)

    def _committed(self) -> int:
        """The last batch that Spark has marked as committed; it forgets old ones."""
        return max((int(path.name) for path in (self._directory / "checkpoint" / "commits").glob("[0-9]*")), default=-1)

    def batches(self) -> int:
        return self._committed() + 1

    def _strike(self, application: Application, victim: str) -> bool:
        """Kills after a while; False if the pipeline ended before that."""
        time.sleep(self._chance.uniform(0.2, 6.0))
        if victim == "driver" or victim == "broker":
            if application.ended() is not None:
                return False
            if victim == "driver":
                application.kill_driver()
            else:
                self._broker.kill()
                time.sleep(self._chance.uniform(0.0, 3.0))
                self._broker.start()
        else:
            pids = self._wait_for(application, Kind.EXECUTOR if victim == "executor" else Kind.WORKER)
            if not pids:
                return False
            application.kill(self._chance.choice(pids))
        self.killed[victim] += 1
        self._note(f"killed {victim}")
        return True

    def _wait_for(self, application: Application, kind: Kind) -> list[int]:
        """Its processes of a kind: after a kill there may be none for a while. None at all, once it has ended."""
        deadline = time.monotonic() + START_TIMEOUT_S
        while application.ended() is None:
            pids = application.processes(kind)
            if pids:
                return pids
            assert time.monotonic() < deadline, f"no {kind.name.lower()} comes again: {self.history}\n{self._log_end()}"
            time.sleep(STEP_S)
        return []

    def _note(self, step: str) -> None:
        self.history.append(step)
        self.tell(f"{step}; {sum(self.killed.values())} kills, {self.batches()} batches")

    def _end_of(self, application: Application) -> int | None:
        deadline = time.monotonic() + END_TIMEOUT_S
        while application.ended() is None:
            assert time.monotonic() < deadline, f"the pipeline does not end: {self.history}\n{self._log_end()}"
            time.sleep(STEP_S)
        return application.ended()

    def _log_end(self) -> str:
        self._output.flush()
        return "\n".join(Path(self._output.name).read_text(errors="replace").splitlines()[-60:])


def fill(bootstrap: str, partition: int, numbers: range) -> None:
    import confluent_kafka

    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 20})
    for number in numbers:
        producer.produce(SOURCE, str(number).encode(), partition=partition)
    assert producer.flush(60) == 0
