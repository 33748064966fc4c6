"""Which name was meant by one that is not known."""

from __future__ import annotations

import pytest

from barnabas.near_names import near_name

KNOWN = ("acks", "linger.ms", "retries", "group.id", "fetch.max.bytes", "fetch.min.bytes")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("linger.mss", "linger.ms"),
        ("lingr.m", "linger.ms"),
        ("retires", "retries"),  # two letters changed places
        ("LINGER_MS", "linger.ms"),
        ("group-ids", "group.id"),
        ("ack", "acks"),
        ("fetch.mix.bytes", "fetch.max.bytes"),  # as near to another: the first by name
        ("fetch.mni.bytes", "fetch.min.bytes"),
        ("lingering.ms", None),
        ("tasks", None),  # two edits are too many for a short name
        ("as", None),
        ("", None),
    ],
)
def test_the_nearest_name_within_two_edits(name: str, meant: str | None) -> None:
    assert near_name(name, KNOWN) == meant
