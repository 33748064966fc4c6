"""The value of `--brokers`: of how many brokers a cluster in one process is."""

from __future__ import annotations

from argparse import ArgumentTypeError
from typing import Final

BROKERS_MAX: Final = 100


def broker_count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 0 < int(text) <= BROKERS_MAX:
        raise ArgumentTypeError(f"from 1 to {BROKERS_MAX} brokers, not {text}")
    return int(text)
