"""Topics that clients of this broker ask for, made by the controller, whichever broker that is (`auto_topic_creation.TopicCreator`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol, cast

from barnabas.broker.topics.admin_manager import AdminManager, TopicCreation
from barnabas.client.errors import error_for
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.message import Message
from barnabas.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from barnabas.protocol.messages.create_topics_response import CreateTopicsResponse

VERSION: Final = 7


class AskController(Protocol):
    async def ask(self, request: Message, version: int, timeout_ms: int | None = None) -> Message: ...


class ForwardedTopicCreation:
    def __init__(self, admin: AdminManager, is_controller: Callable[[], bool], controller: AskController) -> None:
        self._admin = admin
        self._is_controller = is_controller
        self._controller = controller

    async def create_topics(self, topics: Sequence[CreatableTopic], timeout_ms: int) -> list[TopicCreation]:
        """Raises KafkaError where the controller cannot be asked."""
        if self._is_controller():
            return await self._admin.create_topics(topics, timeout_ms)
        request = CreateTopicsRequest(list(topics), timeout_ms)
        response = cast("CreateTopicsResponse", await self._controller.ask(request, VERSION, timeout_ms))
        return [
            TopicCreation(each.name, None if each.error_code == ErrorCode.NONE else error_for(each.error_code, each.error_message))
            for each in response.topics
        ]
