"""Forgets a broker that has stopped for good: removes what the metadata store still has of it."""

from __future__ import annotations

import logging
from random import Random

from barnabas.errors import InvalidRequest, KafkaError
from barnabas.metadata import paths
from barnabas.metadata.admin_tree import AdminTree
from barnabas.metadata.client import TreeClient
from barnabas.protocol.errors import ErrorCode

_log = logging.getLogger(__name__)


class BrokerIdNotRegistered(KafkaError):
    """BROKER_ID_NOT_REGISTERED: nothing is known of this broker."""

    code = int(ErrorCode.BROKER_ID_NOT_REGISTERED)


async def forget_broker(tree: TreeClient, random: Random, broker_id: int) -> None:
    """Removes the dynamic configs of the broker; its registration ended with its session. Raises InvalidRequest if the broker is alive or
    replicas are assigned to it, and BrokerIdNotRegistered if nothing is left of it."""
    if broker_id >= 0 and await tree.exists(paths.broker_id(broker_id)) is not None:
        raise InvalidRequest(f"Broker {broker_id} is alive: stop it first, its registration ends with it")
    admin_tree = AdminTree(tree, random)
    assignments = await admin_tree.topic_assignments(await admin_tree.all_topics())
    held = sorted(
        f"{topic}-{number}"
        for topic, assignment in assignments.items()
        for number, partition in assignment.partitions.items()
        if broker_id in partition.replicas
    )
    if held:
        count = f"{len(held)} replica{'s' if len(held) > 1 else ''}, such as that of {held[0]}"
        raise InvalidRequest(f"Broker {broker_id} still holds {count}: move them to other brokers first, with reassign-partitions")
    if broker_id < 0 or not await tree.delete_recursive(paths.config_entity(f"brokers/{broker_id}")):
        raise BrokerIdNotRegistered(f"Broker ID {broker_id} is not currently registered")
    await admin_tree.notify_config_change(f"brokers/{broker_id}")
    _log.info("Broker %d is unregistered: its dynamic configs are removed", broker_id)
