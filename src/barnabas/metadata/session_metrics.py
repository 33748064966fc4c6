"""What a broker measures of its sessions with the metadata store. The counts are those since the start of the broker."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from barnabas.metrics.histogram import Histogram


class SessionMetrics:
    def __init__(self) -> None:
        self.connects = 0  # connections of a session that were established
        self.disconnects = 0
        self.expirations = 0
        self.auth_failures = 0
        self.sasl_authentications = 0
        self.request_us = Histogram()  # from a request to its response, in microseconds


@runtime_checkable
class MeasuredTree(Protocol):
    """A metadata store whose sessions count by themselves."""

    @property
    def session_metrics(self) -> SessionMetrics: ...
