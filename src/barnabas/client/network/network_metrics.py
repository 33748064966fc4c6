# Compiled by mypyc: src/compiled.toml lists this module.
"""The network metrics of a client, with the names of Kafka's selector: bytes, requests and connections, in total and per broker."""

from __future__ import annotations

from collections.abc import Callable

from barnabas.client.metrics.metrics import Avg, CumulativeCount, CumulativeSum, MetricName, Metrics, Rate, Sensor
from barnabas.client.network.connection import Traffic


class NetworkMetrics:
    """`group` is the prefix of the metric groups: producer, consumer, admin-client."""

    def __init__(self, metrics: Metrics, group: str, connection_count: Callable[[], int]) -> None:
        self.metrics = metrics
        self.group = group
        self._whole = f"{group}-metrics"
        self.created = self._pair("connection-creation", "connections-created", "new connections established")
        self.closed = self._pair("connection-close", "connections-closed", "connections closed")
        self.io = self._pair("network-io", "bytes-sent-received", "network operations (reads or writes) on all connections")
        self.authenticated = self._pair("successful-authentication", "successful-authentication", "successful authentications")
        self.refused = self._pair("failed-authentication", "failed-authentication", "failed authentications")
        self.reauthenticated = self._pair("successful-reauthentication", "successful-reauthentication", "successful re-authentications")
        self.rerefused = self._pair("failed-reauthentication", "failed-reauthentication", "failed re-authentications")
        name = metrics.metric_name
        self.reauthentication_latency = metrics.average_and_max(
            "reauthentication-latency",
            name("reauthentication-latency-avg", self._whole, "The average latency observed due to re-authentication"),
            name("reauthentication-latency-max", self._whole, "The max latency observed due to re-authentication"),
        )
        # Brokers before 2.2 do not expire sessions. No current client meets one, but monitoring may look for the name.
        no_reauth = name("successful-authentication-no-reauth-total", self._whole, "Authentications that cannot be renewed")
        metrics.add("successful-authentication-no-reauth", no_reauth, CumulativeCount())
        self._all = _Sizes(metrics, self._whole, "")
        self._times = _IoTimes(metrics, self._whole)
        metrics.gauge(name("connection-count", self._whole, "The current number of active connections."), connection_count)

    def node(self, node_id: int) -> Traffic:
        """The traffic with one broker, which also counts in the totals."""
        own = _Sizes(self.metrics, f"{self.group}-node-metrics", f"node-{node_id}")
        return _NodeTraffic(own, self._all, self.io, self._times)

    def _pair(self, stem: str, sensor: str, quantity: str) -> Sensor:
        name = self.metrics.metric_name
        return self.metrics.meter(
            sensor,
            name(f"{stem}-rate", self._whole, f"The number of {quantity} per second"),
            name(f"{stem}-total", self._whole, f"The total number of {quantity}"),
            counting=True,
        )


class _Sizes:
    """Bytes sent and received, request sizes and latencies; of all brokers, or of the broker whose tag is given."""

    def __init__(self, metrics: Metrics, group: str, node: str) -> None:
        prefix = f"{node}." if node else ""
        tags = {"node_id": node} if node else {}

        def name(text: str, description: str) -> MetricName:
            return metrics.metric_name(text, group, description, **tags)

        def meter(sensor: str, stem: str, quantity: str, *, counting: bool = False) -> Sensor:
            rate = name(f"{stem}-rate", f"The number of {quantity} per second")
            return metrics.meter(sensor, rate, name(f"{stem}-total", f"The total number of {quantity}"), counting=counting)

        sent, answered = f"{prefix}bytes-sent", f"{prefix}responses-received"
        meter(sent, "outgoing-byte", "outgoing bytes sent to all servers")
        meter(sent, "request", "requests sent", counting=True)
        self.sent = metrics.average_and_max(
            sent,
            name("request-size-avg", "The average size of requests sent."),
            name("request-size-max", "The maximum size of any request sent."),
        )
        self.received = meter(f"{prefix}bytes-received", "incoming-byte", "bytes read off all sockets")
        self.answered = meter(answered, "response", "responses received", counting=True)
        if node:
            metrics.average_and_max(
                answered,
                name("request-latency-avg", "The average request latency in ms"),
                name("request-latency-max", "The maximum request latency in ms"),
            )


class _IoTimes:
    """The fraction of time that the thread spends on socket I/O, and the time that it waits for sockets.

    An event loop does not report how often it polls, so a select is counted when the loop calls with data to read. I/O time is the handling
    of that data, and writing; wait time is the time between.
    """

    def __init__(self, metrics: Metrics, group: str) -> None:
        def name(text: str, description: str) -> MetricName:
            return metrics.metric_name(text, group, description)

        def spent(stem: str, activity: str, average: str) -> None:
            metrics.add(f"{stem}-ns", name(f"{stem}-time-ns-avg", average), Avg(metrics.samples, metrics.window_ms))
            metrics.add(f"{stem}-ns", name(f"{stem}-time-ns-total", f"The total time the I/O thread spent {activity}"), CumulativeSum())
            metrics.add(
                f"{stem}-s",
                name(f"{stem}-ratio", f"The fraction of time the I/O thread spent {activity}"),
                Rate(metrics.samples, metrics.window_ms),
            )

        self._selected = metrics.meter(
            "select",
            name("select-rate", "The number of times the I/O layer checked for new I/O to perform per second"),
            name("select-total", "The total number of times the I/O layer checked for new I/O to perform"),
            counting=True,
        )
        spent("io", "doing I/O", "The average length of time for I/O per select call in nanoseconds.")
        waiting = "The average length of time the I/O thread spent waiting for a socket ready for reads or writes in nanoseconds."
        spent("io-wait", "waiting", waiting)
        self._io_ns, self._io_s = metrics.sensor("io-ns"), metrics.sensor("io-s")
        self._wait_ns, self._wait_s = metrics.sensor("io-wait-ns"), metrics.sensor("io-wait-s")
        self._depth = 0  # reading a response may lead to writing a request, within the same turn
        self._began_ns = 0
        self._ended_ns = -1

    def begins(self, now_ns: int) -> None:
        self._depth += 1
        if self._depth == 1:
            self._began_ns = now_ns

    def ended(self, now_ns: int, now_ms: int, reading: bool) -> None:
        self._depth -= 1
        if self._depth:
            return
        io_ns = now_ns - self._began_ns
        self._io_ns.record(io_ns, now_ms)
        self._io_s.record(io_ns / 1e9, now_ms)
        if self._ended_ns >= 0:
            wait_ns = max(self._began_ns - self._ended_ns, 0)
            self._wait_ns.record(wait_ns, now_ms)
            self._wait_s.record(wait_ns / 1e9, now_ms)
        self._ended_ns = now_ns
        if reading:
            self._selected.record(1.0, now_ms)


class _NodeTraffic:
    def __init__(self, own: _Sizes, all_nodes: _Sizes, io: Sensor, times: _IoTimes) -> None:
        self._own = own
        self._all = all_nodes
        self._io = io
        self._times = times

    def io_begins(self, now_ns: int) -> None:
        self._times.begins(now_ns)

    def io_ended(self, now_ns: int, now_ms: int, *, reading: bool) -> None:
        self._times.ended(now_ns, now_ms, reading)

    def sent(self, size: int, now_ms: int) -> None:
        self._io.record(size, now_ms)
        self._own.sent.record(size, now_ms)
        self._all.sent.record(size, now_ms)

    def received(self, size: int, now_ms: int) -> None:
        self._io.record(size, now_ms)
        self._own.received.record(size, now_ms)
        self._all.received.record(size, now_ms)

    def answered(self, latency_ms: int, now_ms: int) -> None:
        self._own.answered.record(latency_ms, now_ms)
        self._all.answered.record(latency_ms, now_ms)
