"""The topic of the decision log: creates it with the required settings, and rejects one with others.

Retention would delete decisions that still count, so cleanup.policy must be compact alone. Timestamps must be LogAppendTime, because the
time limit of a decision cannot be checked by the clocks of clients. Every process that reads the log checks this once.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from barnabas.client.errors import TopicExists, error_for
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from barnabas.protocol.messages.describe_configs_response import DescribeConfigsResponse
from pyspark_barnabas.errors import OptionError

if TYPE_CHECKING:
    from pyspark_barnabas.connections import Client

_log: Final = logging.getLogger(__name__)

OPTION: Final = "decisionTopic"
REQUIRED: Final = {"cleanup.policy": "compact", "message.timestamp.type": "LogAppendTime"}
SETTINGS: Final = {
    **REQUIRED,
    "segment.bytes": str(1024 * 1024),
    "min.cleanable.dirty.ratio": "0.1",
    "compression.type": "producer",
}
_TOPIC: Final = 2  # the config resource of the topic


async def create(client: Client, topic: str) -> None:
    """Creates the topic; automatic creation by the broker would not compact it."""
    from barnabas.client.admin import AsyncAdmin, NewTopic

    _log.info("Creating the topic %s for decisions", topic)
    async with AsyncAdmin(_admin_settings(client)) as admin:
        outcomes = await admin.create_topics([NewTopic(topic, 1, None, configs=SETTINGS)])
        try:
            outcomes.all()
        except TopicExists:
            return


async def check(client: Client, topic: str) -> None:
    """Raises OptionError unless the topic has the required settings; a client without permission to read them skips the check."""
    request = DescribeConfigsRequest([DescribeConfigsResource(_TOPIC, topic, list(REQUIRED))])
    response = await client.network.send_to_any(request)
    assert isinstance(response, DescribeConfigsResponse)
    result = response.results[0]
    if result.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
        _log.warning("Whether %s is compacted cannot be seen: that takes DescribeConfigs on the topic.", topic)
        return
    if result.error_code:
        raise error_for(result.error_code, result.error_message)
    configs = {config.name: config.value or "" for config in result.configs}
    if wrong := [f"{name}={configs[name]}" for name, value in REQUIRED.items() if configs.get(name, value).replace(" ", "") != value]:
        required = ",".join(f"{name}={value}" for name, value in REQUIRED.items())
        raise OptionError(
            OPTION,
            f"names the topic {topic}, which has {' and '.join(wrong)}: decisions in it could be lost, or be late unnoticed. Alter it "
            f"(kafka-configs.sh --alter --entity-type topics --entity-name {topic} --add-config {required}), or name a topic that does not "
            "exist yet: it is made as it has to be.",
        )


def _admin_settings(client: Client) -> dict[str, object]:
    """The settings that an admin client also has: connection and authentication."""
    from barnabas.client.admin.config import KEYS

    return {name: client.config[name] for name in KEYS if name in client.config and client.config.is_given(name)}
