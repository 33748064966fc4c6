"""Java's hash of a string. It determines the coordinator of a group, and the order in which Kafka's tools print maps."""

from __future__ import annotations


def java_hash(text: str) -> int:
    """String.hashCode: over UTF-16 units, with the overflow of a signed int."""
    value = 0
    for unit in memoryview(text.encode("utf-16-le", "surrogatepass")).cast("H"):
        value = (31 * value + unit) & 0xFFFFFFFF
    return value - (1 << 32) if value & 0x80000000 else value
