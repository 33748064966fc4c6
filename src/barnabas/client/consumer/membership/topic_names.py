"""The names of the topics in an assignment of the consumer protocol, which contains only topic ids.

Usually the metadata has them, because the consumer subscribes by name. A pattern that the broker evaluates may assign topics that this
client does not know; then it requests their names by id, and adds them to the topics of the metadata.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from typing import Final

from barnabas.client.consumer.membership.coordinator import end, start
from barnabas.client.consumer.membership.membership import Subscriptions
from barnabas.client.errors import KafkaError
from barnabas.client.network.metadata import Metadata
from barnabas.client.network.network_client import NetworkClient
from barnabas.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from barnabas.protocol.messages.metadata_response import MetadataResponse
from barnabas.uuid import Uuid

log = logging.getLogger(__name__)

RETRY_S: Final = 0.1


class TopicNameResolver:
    def __init__(self, client: NetworkClient, metadata: Metadata, subscriptions: Subscriptions, on_found: Callable[[], None]) -> None:
        self._client = client
        self._metadata = metadata
        self._subscriptions = subscriptions
        self._on_found = on_found
        self._known: dict[Uuid, str] = {}
        self._asking: asyncio.Task[None] | None = None

    def of(self, topic_ids: Collection[Uuid]) -> tuple[dict[Uuid, str], set[Uuid]]:
        """The known names, and the ids without a known name. These are requested, and `on_found` is called when they may be known."""
        cluster = self._metadata.cluster
        names = {
            topic_id: name for topic_id in topic_ids if (name := cluster.topic_name(topic_id) or self._known.get(topic_id)) is not None
        }
        self._known = dict(names)
        missing = set(topic_ids) - names.keys()
        if self._subscriptions.subscribed_regex() is None:
            if missing:
                self._metadata.request_update()
        elif missing:
            if self._asking is None:
                self._asking = start(self._ask(missing))
        else:
            self._metadata.set_topics(names.values())
        return names, missing

    async def close(self) -> None:
        if self._asking is not None:
            await end(self._asking)

    async def _ask(self, topic_ids: Collection[Uuid]) -> None:
        topics = [MetadataRequestTopic(topic_id=topic_id, name=None) for topic_id in topic_ids]
        try:
            response = await self._client.send_to_any(MetadataRequest(topics=topics, allow_auto_topic_creation=False))
            assert isinstance(response, MetadataResponse)
            self._known |= {topic.topic_id: topic.name for topic in response.topics if topic.name and not topic.error_code}
        except KafkaError as problem:
            log.warning("Metadata request for the names of assigned topics failed: %s", problem)
            await asyncio.sleep(RETRY_S)
        finally:
            self._asking = None
        self._on_found()
