# Compiled by mypyc: src/compiled.toml lists this module.
"""The times, sizes and outcomes of the requests of one kind, such as Produce, or the Fetch of followers.

The dispatcher gives each exchange the object of its kind; the exchange records into it once, when its response has been sent.
"""

from __future__ import annotations

from mypy_extensions import i64

from barnabas.metrics.histogram import Histogram


class RequestMetrics:
    """Times are in microseconds, sizes in bytes. The times of waiting are mostly zero, and zeros are not recorded: there are as many as
    `total_us` has more samples. `versions` counts the requests by their version, `errors` the errors in the responses by
    their code, and 0 for what succeeded. Both are bounded: the dispatcher passes only versions and codes that exist."""

    __slots__ = (
        "errors",
        "local_us",
        "name",
        "remote_us",
        "request_bytes",
        "request_queue_us",
        "response_bytes",
        "response_queue_us",
        "response_send_us",
        "throttle_us",
        "total_us",
        "versions",
    )

    def __init__(self, name: str, versions: int) -> None:
        self.name = name
        self.request_queue_us = Histogram()  # from receiving the request to its turn
        self.local_us = Histogram()  # in the handler
        self.remote_us = Histogram()  # waiting for other brokers, for records, for members of a group
        self.throttle_us = Histogram()  # by quotas
        self.response_queue_us = Histogram()  # the response is ready, and earlier ones are not written yet
        self.response_send_us = Histogram()  # writing the response
        self.total_us = Histogram()
        self.request_bytes = Histogram()
        self.response_bytes = Histogram()
        self.versions = [0] * versions
        self.errors: dict[int, int] = {}

    def record(
        self,
        version: int,
        request_size: i64,
        response_size: i64,
        throttle_ms: i64,
        received_ns: i64,
        dequeued_ns: i64,
        local_ns: i64,
        complete_ns: i64,
        sending_ns: i64,
        sent_ns: i64,
    ) -> None:
        """Records a request at the end of its way. The times are points on one clock, in their order."""
        self.versions[version] += 1
        self.request_bytes.record(request_size)
        self.response_bytes.record(response_size)
        self.local_us.record((local_ns - dequeued_ns) // 1000)
        self.response_send_us.record((sent_ns - sending_ns) // 1000)
        self.total_us.record((sent_ns - received_ns) // 1000)
        if throttle_ms > 0:
            self.throttle_us.record(throttle_ms * 1000)
        if dequeued_ns - received_ns >= 1000:
            self.request_queue_us.record((dequeued_ns - received_ns) // 1000)
        if complete_ns - local_ns >= 1000:
            self.remote_us.record((complete_ns - local_ns) // 1000)
        if sending_ns - complete_ns >= 1000:
            self.response_queue_us.record((sending_ns - complete_ns) // 1000)

    @property
    def histograms(self) -> tuple[Histogram, ...]:
        return (
            self.request_queue_us,
            self.local_us,
            self.remote_us,
            self.throttle_us,
            self.response_queue_us,
            self.response_send_us,
            self.total_us,
            self.request_bytes,
            self.response_bytes,
        )

    def rotate(self) -> None:
        """Begins a new window of all histograms."""
        for histogram in self.histograms:
            histogram.rotate()
