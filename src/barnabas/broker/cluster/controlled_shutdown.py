"""The controlled shutdown of a broker: it requests that the controller moves its leaders, and stops when that is done or has failed."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final, cast

from barnabas.errors import KafkaError
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.controlled_shutdown_request import ControlledShutdownRequest
from barnabas.protocol.messages.controlled_shutdown_response import ControlledShutdownResponse

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.cluster.cluster_member import ClusterMember
    from barnabas.broker.config import BrokerConfig

VERSION: Final = 3
NO_CONTROLLER_RETRY_S: Final = 0.2
ALONE_CHECK_S: Final = 0.1

_log = logging.getLogger(__name__)


async def controlled_shutdown(broker: Broker, cluster: ClusterMember, config: BrokerConfig) -> bool:
    """Returns whether the broker leads nothing any more. The last broker of a cluster does not try: no other broker can lead."""
    cluster.leave()
    backoff_s = config.number("controlled.shutdown.retry.backoff.ms") / 1000
    for left in range(config.number("controlled.shutdown.max.retries"), 0, -1):
        if _is_alone(broker):
            return False
        request = ControlledShutdownRequest(broker.broker_id, cluster.broker_epoch)
        try:
            timeout_ms = config.number("controller.socket.timeout.ms")
            response = cast("ControlledShutdownResponse", await cluster.to_controller.ask(request, VERSION, timeout_ms))
        except KafkaError as error:
            _log.warning("The controlled shutdown request failed: %s", error)
            await asyncio.sleep(min(backoff_s, NO_CONTROLLER_RETRY_S))
            continue
        if response.error_code == ErrorCode.NONE and not response.remaining_partitions:
            _log.info("Controlled shutdown request returned successfully")
            return True
        _log.info("Remaining partitions to move: %d, error %d", len(response.remaining_partitions), response.error_code)
        if left > 1:
            is_elsewhere = response.error_code == ErrorCode.NOT_CONTROLLER
            await _back_off(broker, min(backoff_s, NO_CONTROLLER_RETRY_S) if is_elsewhere else backoff_s)
    _log.warning("Proceeding to do an unclean shutdown as all the controlled shutdown attempts failed")
    return False


async def _back_off(broker: Broker, backoff_s: float) -> None:
    """Waits for other brokers to take over, as long as there are any. When all brokers are stopped together, no other broker can take over
    the partitions of the last one."""
    end = asyncio.get_running_loop().time() + backoff_s
    while not _is_alone(broker) and (left := end - asyncio.get_running_loop().time()) > 0:
        await asyncio.sleep(min(left, ALONE_CHECK_S))


def _is_alone(broker: Broker) -> bool:
    return all(alive.id == broker.broker_id for alive in broker.metadata_cache.alive_brokers())
