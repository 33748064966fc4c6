"""A whole attack on one broker: rounds of the storm, with a well-behaved client beside it, and what is left when it is over.

Between the rounds the topics are put in order again, so that the frames go on meeting something; what the broker had to complain about is
looked for after each, so that a finding comes with the round it happened in.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.fuzz import sasl, target, witness
from tests.fuzz.storm import Outcome, storm
from tests.fuzz.target import Target

ROUND = 10_000
WARM_UP = 2_000  # frames after which all is loaded and cached that ever will be
WARM_UP_SEED = 0
MEMORY_GROWTH_MB_MAX = 48
FINDINGS_MAX = 20  # the rest would say the same
FILES_GROWTH_MAX = 10
_PEER_PORT = re.compile(r"-127\.0\.0\.1:(\d+)-\d+")


@dataclass
class Report:
    frames: int = 0
    memory_before_mb: float = 0
    memory_after_mb: float = 0
    files_before: int = 0
    files_after: int = 0
    slowest_ms: float = 0
    witnessed: int = 0
    findings: list[str] = field(default_factory=list)


def run(directory: Path, seed: int, numbers: range, tell: Callable[[str], None]) -> Report:
    """Sends these frames of the seed to a new broker."""
    report = Report()
    with target.running(directory) as broker:
        sasl.add_user(broker)
        with witness.watching(broker.port) as testimony:
            _round(broker, WARM_UP_SEED, range(min(WARM_UP, len(numbers))), report)
            _at_rest(broker)
            report.files_before = broker.await_files(target.FILES_AT_REST)
            report.frames, report.memory_before_mb = 0, broker.memory_mb()
            tell(f"seed {seed}: {len(numbers):,} frames; memory {report.memory_before_mb:.0f} MB, {report.files_before} descriptors")
            for at in range(0, len(numbers), ROUND):
                started = time.monotonic()
                outcome = _round(broker, seed, numbers[at : at + ROUND], report)
                tell(f"{_summary(outcome, time.monotonic() - started)}, memory {broker.memory_mb():.0f} MB")
                if not broker.is_alive or len(report.findings) >= FINDINGS_MAX:
                    break
            _at_rest(broker)
            report.files_after = broker.await_files(report.files_before + FILES_GROWTH_MAX)
            report.memory_after_mb = broker.memory_mb()
        report.witnessed, report.slowest_ms = testimony[0].records, testimony[0].slowest_ms
        _judge(report)
        tell(
            f"{report.frames:,} frames: memory {report.memory_before_mb:.0f} MB before and {report.memory_after_mb:.0f} MB after "
            f"(peak {broker.peak_memory_mb():.0f} MB), descriptors {report.files_before} and {report.files_after}, beside it "
            f"{report.witnessed:,} records produced and consumed, the slowest in {report.slowest_ms:.0f} ms"
        )
    return report


def _round(broker: Target, seed: int, numbers: range, report: Report) -> Outcome:
    ids = target.prepare_topics(broker, keep=witness.TOPIC)
    outcome = storm(broker, seed, numbers, ids)
    report.frames += outcome.frames
    report.findings += outcome.findings
    report.findings += [_explained(line, outcome) for line in broker.complaints()]
    return outcome


def _at_rest(broker: Target) -> None:
    target.prepare_topics(broker, keep=witness.TOPIC)
    broker.await_connections(most=10)


def _judge(report: Report) -> None:
    if report.memory_after_mb > report.memory_before_mb + MEMORY_GROWTH_MB_MAX:
        report.findings.append(f"memory grew from {report.memory_before_mb:.0f} to {report.memory_after_mb:.0f} MB")
    if report.files_after > report.files_before + FILES_GROWTH_MAX:
        report.findings.append(f"descriptors grew from {report.files_before} to {report.files_after}")


def _explained(line: str, outcome: Outcome) -> str:
    """A line of the broker's log, with the last frames of the connection that it is about."""
    peer = _PEER_PORT.search(line)
    sent = [] if peer is None else list(outcome.sent_by_port.get(int(peer[1]), ()))
    frames = "".join(f"\n    sent before: {frame}" for frame in sent[-3:])
    return line.strip().replace("\\n", "\n    ") + frames


def _summary(outcome: Outcome, seconds: float) -> str:
    common = ", ".join(f"{count} x {code}" for code, count in outcome.errors.most_common(5))
    return (
        f"{outcome.frames:,} frames in {seconds:.1f} s on {outcome.connections:,} connections: {outcome.answered:,} answered "
        f"({common}, {len(outcome.errors)} error codes in all), {outcome.closed:,} closed, {outcome.silent:,} silent"
    )
