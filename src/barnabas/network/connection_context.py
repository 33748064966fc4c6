# Compiled by mypyc: src/compiled.toml lists this module.
"""What all connections of one listener share: its dispatcher, bounds, counters and the buffer that they receive into."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from barnabas.network.config import NetworkConfig
from barnabas.network.exchange import Dispatcher
from barnabas.network.frames import FrameReader
from barnabas.network.idle_connections import IdleConnections
from barnabas.network.metrics import ListenerMetrics
from barnabas.network.receive_memory import ReceiveMemory
from barnabas.network.request_gate import RequestGate

if TYPE_CHECKING:
    from barnabas.network.connection import Connection

# In one iteration of the loop the large requests of all connections of a listener receive about this many bytes. A socket can hold tens of
# megabytes, and copying one takes about 0.3 ms.
RECEIVED_PER_TURN: Final = 2 << 20


class ConnectionContext:
    """`opened` and `closed` are called with each connection."""

    def __init__(
        self,
        listener_name: str,
        config: NetworkConfig,
        dispatcher: Dispatcher,
        gate: RequestGate,
        receive_memory: ReceiveMemory,
        metrics: ListenerMetrics,
        idle: IdleConnections[Connection],
        receive_view: memoryview,
        loop: Any,  # an asyncio.AbstractEventLoop, or a simulated one: compiled code would check the class
        monotonic_ms: Callable[[], int],
        opened: Callable[[Connection], None],
        closed: Callable[[Connection], None],
    ) -> None:
        self.listener_name = listener_name
        self.config = config
        self.dispatcher = dispatcher
        self.gate = gate
        self.receive_memory = receive_memory
        self.metrics = metrics
        self.idle = idle
        self.receive_view = receive_view
        self.loop = loop
        self.monotonic_ms = monotonic_ms
        self.opened = opened
        self.closed = closed
        self.pipelined_requests_max = config.pipelined_requests_max
        self.write_high_water_bytes = config.write_high_water_bytes
        limits = config.listener_limits.get(listener_name)
        self._unauthenticated_max_bytes = None if limits is None else limits.unauthenticated_request_max_bytes
        self.requires_authentication = self._unauthenticated_max_bytes is not None
        self._received_in_turn = 0

    def new_frame_reader(self) -> FrameReader:
        """Bounds the frames of a peer that has to authenticate itself first."""
        if self._unauthenticated_max_bytes is None:
            return FrameReader(self.config.socket_request_max_bytes)
        return FrameReader(self._unauthenticated_max_bytes, "sasl.server.max.receive.size")

    def is_turn_over(self, received: int) -> bool:
        """Counts received bytes of large requests. Returns whether this iteration of the loop has received enough of them."""
        if self._received_in_turn == 0:
            self.loop.call_soon(self._begin_turn)
        self._received_in_turn += received
        return self._received_in_turn >= RECEIVED_PER_TURN

    def _begin_turn(self) -> None:
        self._received_in_turn = 0
