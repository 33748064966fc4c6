"""Parses `--brokers`: the number of brokers of a cluster in one process."""

from __future__ import annotations

from argparse import ArgumentTypeError
from typing import Final

BROKERS_MAX: Final = 100


def broker_count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 0 < int(text) <= BROKERS_MAX:
        raise ArgumentTypeError(f"from 1 to {BROKERS_MAX} brokers, not {text}")
    return int(text)
