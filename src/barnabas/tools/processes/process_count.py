"""Parses `--processes`: the number of broker processes of one machine."""

from __future__ import annotations

import os
from argparse import ArgumentParser, ArgumentTypeError
from typing import Final

from barnabas.tools.running.broker_count import BROKERS_MAX

AUTO: Final = "auto"


def add_process_option(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--processes",
        type=process_count,
        default=None,
        metavar="N",
        help="so many broker processes, with consecutive node ids, ports and directories; auto: one for each core. "
        "Data that was made for another number is converted",
    )


def process_count(text: str) -> int:
    if text == AUTO:
        return min(cores(), BROKERS_MAX)
    if not text.isascii() or not text.isdigit() or not 0 < int(text) <= BROKERS_MAX:
        raise ArgumentTypeError(f"from 1 to {BROKERS_MAX} processes, or {AUTO}, not {text}")
    return int(text)


def cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
