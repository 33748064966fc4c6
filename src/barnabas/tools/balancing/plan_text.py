"""A plan as tables and as JSON, and the progress of its copies as a line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from barnabas.administration.copy_progress import CopiedBytes
from barnabas.tools.administration.reassignment_plan import ANY_LOG_DIR
from barnabas.tools.administration.status_text import size_text, table
from barnabas.tools.balancing.cluster_load import Carried
from barnabas.tools.balancing.plan import PartitionMove, Plan
from barnabas.tools.command_line.progress import bar, duration_text


def plan_screen(plan: Plan) -> str:
    return "\n".join(_lines(plan))


def plan_json(plan: Plan) -> dict[str, Any]:
    """`reassignment` is what reassign-partitions takes."""
    before, after = plan.before(), plan.after()
    return {
        "brokers": [
            {"id": broker.id, "rack": broker.rack, "before": vars(before[broker.id]), "after": vars(after[broker.id])}
            for broker in plan.load.brokers
        ],
        "copies": plan.copies,
        "copiedBytes": plan.copied_bytes,
        "reassignment": {
            "version": 1,
            "partitions": [
                {
                    "topic": move.partition.topic,
                    "partition": move.partition.partition,
                    "replicas": list(move.after),
                    "log_dirs": [ANY_LOG_DIR] * len(move.after),
                }
                for move in plan.moves
            ],
        },
    }


def _lines(plan: Plan) -> Iterator[str]:
    before, after = plan.before(), plan.after()
    headers = ("BROKER", "RACK", "REPLICAS", "LEADERS", "SIZE", "TRAFFIC")
    yield from table(headers, [_broker(broker.id, broker.rack, before[broker.id], after[broker.id]) for broker in plan.load.brokers])
    cordoned = plan.load.cordoned_ids
    if cordoned:
        yield f"Cordoned, get no replicas: {', '.join(map(str, cordoned))}."
    if plan.moves:
        yield ""
        yield from table(("PARTITION", "REPLICAS", "TO", "SIZE"), [_move(move) for move in plan.moves])
    yield ""
    leaders = sum(move.before[0] != move.after[0] for move in plan.moves)
    yield (f"{counted(plan.copies, 'replica')} to copy ({size_text(plan.copied_bytes)}), {counted(leaders, 'preferred leader')} to change.")


def _broker(broker: int, rack: str | None, before: Carried, after: Carried) -> Sequence[str]:
    return (
        str(broker),
        rack or "-",
        _change(str(before.replicas), str(after.replicas)),
        _change(str(before.leaders), str(after.leaders)),
        _change(size_text(before.bytes), size_text(after.bytes)),
        _change(f"{size_text(before.traffic)}/s", f"{size_text(after.traffic)}/s"),
    )


def _change(before: str, after: str) -> str:
    return before if before == after else f"{before} -> {after}"


def _move(move: PartitionMove) -> Sequence[str]:
    size = size_text(move.copied_bytes) if move.adding else "-"
    return str(move.partition), ",".join(map(str, move.before)), ",".join(map(str, move.after)), size


def progress_line(progress: CopiedBytes) -> str:
    """`Moving ███···  40% 1.2 GB of 3.0 GB, 2 of 5 replicas, 1 min 20 s left`"""
    rate = "" if progress.bytes_per_s is None else f", {size_text(int(progress.bytes_per_s))}/s"
    left = "" if progress.left_s is None else f", {duration_text(progress.left_s)} left"
    return (
        f"Moving {bar(progress.share)} {progress.share:4.0%} {size_text(progress.done_bytes)} of "
        f"{size_text(progress.total_bytes)}, {progress.done_copies} of {counted(progress.total_copies, 'replica')}{rate}{left}"
    )


def counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
