"""The screen of `barnabas status`: a Health as lines of text, coloured on a terminal."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from typing import Final

from barnabas.administration.cluster_health import BrokerHealth, GroupHealth, Health, LogDirHealth
from barnabas.tools.command_line.text import Colour, coloured, heading

_UNITS: Final = ("B", "KB", "MB", "GB", "TB", "PB")
_KILO: Final = 1024
_GROUPS_MAX: Final = 10
_VERDICT_COLOURS: Final[dict[str, Colour]] = {"HEALTHY": "green", "WARNING": "yellow", "CRITICAL": "red"}


def screen(health: Health, *, all_groups: bool = False) -> str:
    return "\n".join(_lines(health, all_groups))


def _lines(health: Health, all_groups: bool) -> Iterator[str]:
    verdict = health.verdict
    yield f"{heading('Cluster')} {health.cluster_id or '?'}  {coloured(verdict, _VERDICT_COLOURS[verdict])}"
    controller = "none" if health.controller is None else str(health.controller)
    internal = f" ({health.internal_topics} internal)" if health.internal_topics else ""
    yield (
        f"  brokers {len(health.brokers)}, controller {controller}, topics {health.topics}{internal}, "
        f"partitions {len(health.partitions)}, replicas {health.replicas}"
    )
    yield (
        f"  partitions offline {health.count('is_offline')}, under min ISR {health.count('is_under_min_isr')}, "
        f"at min ISR {health.count('is_at_min_isr')}, under-replicated {health.count('is_under_replicated')}, "
        f"not led by the preferred replica {health.count('has_other_leader')}, "
        f"reassigning {'?' if health.reassigning is None else health.reassigning}"
    )
    for host, brokers in health.machines.items():
        up = sum(not broker.is_down and not broker.is_fenced for broker in brokers)
        yield f"  machine {host}: {up} of {len(brokers)} brokers up ({', '.join(str(broker.id) for broker in brokers)})"
    if health.features:
        yield f"  features {', '.join(f'{name} {level}' for name, level in sorted(health.features.items()))}"
    for problem in health.problems():
        yield f"  {coloured('!', 'red' if problem.severity == 'critical' else 'yellow')} {problem.text}"
    yield ""
    yield from table(("BROKER", "ADDRESS", "RACK", "STATE", "LEADS", "REPLICAS", "SIZE", "APIS", "METADATA"), _brokers(health))
    if health.log_dirs:
        yield ""
        yield from table(("BROKER", "LOG DIR", "REPLICAS", "SIZE", "FREE", "DISK", "STATE"), map(_log_dir, health.log_dirs))
    if health.groups:
        yield ""
        yield from _groups(health.groups, all_groups)


def _brokers(health: Health) -> Iterator[Sequence[str]]:
    sizes = {broker.id: sum(log_dir.bytes for log_dir in health.log_dirs if log_dir.broker == broker.id) for broker in health.brokers}
    for broker in health.brokers:
        yield (
            f"{broker.id}{'*' if broker.id == health.controller else ''}",
            broker.address,
            broker.rack or "-",
            _state(broker),
            str(broker.leads),
            str(broker.replicas),
            size_text(sizes[broker.id]) if any(log_dir.broker == broker.id for log_dir in health.log_dirs) else "?",
            "?" if broker.apis is None else str(broker.apis),
            broker.version or "-",
        )


def _state(broker: BrokerHealth) -> str:
    if broker.is_down:
        return coloured("down", "red")
    return coloured("fenced", "yellow") if broker.is_fenced else coloured("up", "green")


def _log_dir(log_dir: LogDirHealth) -> Sequence[str]:
    share = log_dir.used_share
    return (
        str(log_dir.broker),
        log_dir.path,
        str(log_dir.replicas),
        size_text(log_dir.bytes),
        "?" if log_dir.free_bytes is None else size_text(log_dir.free_bytes),
        "?" if share is None else f"{share:.0%}",
        coloured("online", "green") if log_dir.error is None else coloured("offline", "red"),
    )


def _groups(groups: Sequence[GroupHealth], everything: bool) -> Iterator[str]:
    """The groups with the largest lag come first."""
    ordered = sorted(groups, key=lambda group: (-(group.lag or 0), group.name))
    shown = ordered if everything else ordered[:_GROUPS_MAX]
    rows = [(group.name, group.type, group.state, "-" if group.members is None else str(group.members), _lag(group.lag)) for group in shown]
    yield from table(("GROUP", "TYPE", "STATE", "MEMBERS", "LAG"), rows)
    if len(shown) < len(ordered):
        yield f"and {len(ordered) - len(shown)} more groups (--all shows them)"


def _lag(lag: int | None) -> str:
    return "-" if lag is None else f"{lag:,}"


def size_text(size: int) -> str:
    """1536 is 1.5 KB."""
    value = float(size)
    for unit in _UNITS:
        if value < _KILO or unit == _UNITS[-1]:
            return f"{value:.0f} {unit}" if unit == "B" or value >= 100 else f"{value:.1f} {unit}"
        value /= _KILO
    raise AssertionError("the last unit takes everything")


def table(headers: Sequence[str], rows: Iterator[Sequence[str]] | Sequence[Sequence[str]]) -> Iterator[str]:
    """Columns with two blanks between them, cut to the width of the terminal."""
    cells = [headers, *rows]
    widths = [max(_width(row[column]) for row in cells) for column in range(len(headers))]
    limit = shutil.get_terminal_size((1000, 24)).columns
    for number, row in enumerate(cells):
        line = "  ".join(cell + " " * (width - _width(cell)) for cell, width in zip(row, widths, strict=True)).rstrip()
        if _width(line) > limit and "\x1b" not in line:
            line = line[:limit]
        yield heading(line) if number == 0 else line


def _width(text: str) -> int:
    """The width of a text without colour codes."""
    plain = text
    while "\x1b[" in plain:
        before, _, rest = plain.partition("\x1b[")
        plain = before + rest.partition("m")[2]
    return len(plain)
