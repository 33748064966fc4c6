"""Members of a consumer group as processes, each on a client of its own, and what they told.

A member prints lines: `hold NANOSECONDS 0,2` is all that it holds from that moment of the machine's monotonic clock on, told before it
lets go of what it must; `read PARTITION FIRST LAST` are offsets it was given; `note` a commit that it will try again; `fail` its end by
an error; `closed` its end on request. The programs are python_member.py, java/Member.java and js/member.js.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests import clients, kafka

HERE = Path(__file__).parent
JAVA_OPTIONS = ("-Xmx128m", kafka.QUIET)
STOP_TIMEOUT_S = 20


class Stuck(AssertionError):
    """What a test waited for did not come; the message says what every member told last."""


@dataclass(frozen=True)
class Seat:
    """Where members sit: a group and its topic."""

    bootstrap: str
    group: str
    topic: str
    strategy: str


@dataclass
class Told:
    """All that a member has told. Written by the thread that reads its lines."""

    holds: list[tuple[int, frozenset[int]]] = field(default_factory=list)
    reads: list[tuple[int, int, int]] = field(default_factory=list)  # partition, first and last offset
    notes: list[str] = field(default_factory=list)
    closed: bool = False

    @property
    def held(self) -> frozenset[int]:
        return self.holds[-1][1] if self.holds else frozenset()


class Member:
    def __init__(self, client: str, command: Sequence[str], environment: dict[str, str], news: threading.Condition) -> None:
        self.client = client
        self.told = Told()
        self.ended_ns: int | None = None  # of a member that was killed: what it held is nobody's from here on
        self._news = news
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            env={**os.environ, **environment},
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def stop(self) -> None:
        """Asks it to end as a well-behaved member does, and waits for that."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.kill()
        self._reader.join()
        if not self.told.closed:
            raise Stuck(f"{self.client} did not close: {self.told.notes[-5:]}")

    def kill(self) -> None:
        self.release()
        self.ended_ns = time.monotonic_ns()

    def release(self) -> None:
        """No process is left of it, whether it lived or not."""
        assert self._process.stdin is not None
        self._process.kill()
        self._process.stdin.close()
        self._process.wait()
        self._reader.join()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if not line.endswith("\n"):
                continue  # the last words of one that was killed
            with self._news:
                self._note(line.rstrip("\n"))
                self._news.notify_all()
        self._process.stdout.close()

    def _note(self, line: str) -> None:
        word, _, rest = line.partition(" ")
        if word == "hold":
            moment, _, partitions = rest.partition(" ")
            self.told.holds.append((int(moment), frozenset(int(one) for one in partitions.split(",") if one)))
        elif word == "read":
            partition, first, last = map(int, rest.split())
            self.told.reads.append((partition, first, last))
        elif word == "closed":
            self.told.closed = True
        else:
            self.told.notes.append(line)


class Members:
    """The members of one group, those of the past among them."""

    def __init__(self, seat: Seat, java_classes: Callable[[], Path]) -> None:
        self.all: list[Member] = []
        self._seat = seat
        self._java_classes = java_classes
        self._news = threading.Condition()

    @property
    def alive(self) -> list[Member]:
        return [member for member in self.all if member.alive]

    def add(self, client: str, *, strategy: str | None = None, instance: str = "-") -> Member:
        """One more, on a client such as `java` or `kafka_python`."""
        command, environment = self._command(client)
        seat = self._seat
        words = [seat.bootstrap, seat.group, seat.topic, strategy or seat.strategy, instance]
        member = Member(client, [*command, *words], environment, self._news)
        self.all.append(member)
        return member

    def wait(self, what: str, condition: Callable[[], bool], timeout_s: float = 40) -> None:
        """Until the condition holds; it is looked at whenever a member has told something."""
        with self._news:
            if not self._news.wait_for(condition, timeout_s):
                raise Stuck(f"{self._seat.group}: not within {timeout_s} s: {what}\n{self.show()}")

    def settled(self, partitions: int) -> bool:
        """Whether every partition is held by somebody, and each member holds one."""
        alive = self.alive
        held = [partition for member in alive for partition in member.told.held]
        return sorted(held) == list(range(partitions)) and all(member.told.held for member in alive)

    def end(self) -> None:
        for member in self.all:
            member.release()

    def show(self) -> str:
        return "\n".join(
            f"{one.client}{'' if one.alive else ' (ended)'} holds {sorted(one.told.held)}, "
            f"read {one.told.reads[-3:]}, said {one.told.notes[-8:]}"
            for one in self.all
        )

    def _command(self, client: str) -> tuple[list[str], dict[str, str]]:
        if client == "java":
            jars = kafka.available(kafka.prepare)
            return [*kafka.java(jars, *JAVA_OPTIONS, then=str(self._java_classes())), "Member"], {}
        if client == "kafkajs":
            modules = kafka.available(clients.kafkajs)
            return ["node", str(HERE / "js" / "member.js")], {"NODE_PATH": str(modules), "KAFKAJS_NO_PARTITIONER_WARNING": "1"}
        return [sys.executable, str(HERE / "python_member.py"), client], {}


def compile_java(directory: Path) -> Path:
    """Compiles the member once, so that each JVM starts with what it runs."""
    jars = kafka.available(kafka.prepare)
    subprocess.run(
        ["javac", "-proc:none", "-cp", f"{jars}/*", "-d", str(directory), str(HERE / "java" / "Member.java")], check=True, timeout=120
    )
    return directory
