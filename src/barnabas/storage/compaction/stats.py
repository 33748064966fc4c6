"""How much a cleaning read and wrote and how long it took, with Kafka's log lines about it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class CleanerStats:
    """The statistics of one cleaning. Times are monotonic."""

    start_ms: int
    map_complete_ms: int = 0
    end_ms: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    map_bytes_read: int = 0
    map_messages_read: int = 0
    messages_read: int = 0
    messages_written: int = 0
    invalid_messages: int = 0
    buffer_utilization: float = 0.0

    @property
    def elapsed_seconds(self) -> float:
        return (self.end_ms - self.start_ms) / 1000

    @property
    def map_seconds(self) -> float:
        return (self.map_complete_ms - self.start_ms) / 1000

    def describe(self, name: str, first_dirty_offset: int, end_offset: int) -> str:
        total, mapping = self.elapsed_seconds, self.map_seconds
        cleaning = total - mapping
        read, mapped, written = _mb(self.bytes_read), _mb(self.map_bytes_read), _mb(self.bytes_written)
        return (
            f"\n\tLog cleaner cleaned log {name} (dirty section = [{first_dirty_offset}, {end_offset}])"
            f"\n\t{read:,.1f} MB of log processed in {total:,.1f} seconds ({_per(read, total):,.1f} MB/sec)."
            f"\n\tIndexed {mapped:,.1f} MB in {mapping:.1f} seconds ({_per(mapped, mapping):,.1f} Mb/sec, "
            f"{100 * _per(mapping, total):.1f}% of total time)"
            f"\n\tBuffer utilization: {100 * self.buffer_utilization:.1f}%"
            f"\n\tCleaned {read:,.1f} MB in {cleaning:.1f} seconds ({_per(read, cleaning):,.1f} Mb/sec, "
            f"{100 * _per(cleaning, total):.1f}% of total time)"
            f"\n\tStart size: {read:,.1f} MB ({self.messages_read:,} messages)"
            f"\n\tEnd size: {written:,.1f} MB ({self.messages_written:,} messages)"
            f"\n\t{100 * (1 - _per(self.bytes_written, self.bytes_read)):.1f}% size reduction "
            f"({100 * (1 - _per(self.messages_written, self.messages_read)):.1f}% fewer messages)"
        )


def _mb(size: int) -> float:
    return size / (1024 * 1024)


def _per(amount: float, of: float) -> float:
    """A share or a rate; 0 if the divisor is 0."""
    return amount / of if of else 0.0
