"""Forwards automatic topic creation to the controller (implements `auto_topic_creation.TopicCreator`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, cast

from barnabas.broker.controller_requests import ControllerRequests
from barnabas.broker.topics.admin_manager import AdminManager, TopicCreation
from barnabas.client.errors import error_for
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from barnabas.protocol.messages.create_topics_response import CreateTopicsResponse

VERSION: Final = 7


class ForwardedTopicCreation:
    """Creates topics directly where this broker is the controller, and sends CreateTopics to the controller otherwise."""

    def __init__(self, admin: AdminManager, is_controller: Callable[[], bool], controller: ControllerRequests) -> None:
        self._admin = admin
        self._is_controller = is_controller
        self._controller = controller

    async def create_topics(self, topics: Sequence[CreatableTopic], timeout_ms: int) -> list[TopicCreation]:
        """Raises KafkaError if the controller cannot be reached."""
        if self._is_controller():
            return await self._admin.create_topics(topics, timeout_ms)
        request = CreateTopicsRequest(list(topics), timeout_ms)
        response = cast("CreateTopicsResponse", await self._controller.ask(request, VERSION, timeout_ms))
        return [
            TopicCreation(topic.name, None if topic.error_code == ErrorCode.NONE else error_for(topic.error_code, topic.error_message))
            for topic in response.topics
        ]
