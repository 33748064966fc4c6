"""Requests of this broker to the controller, as the rooms that send them see them. `links/controller_link.py` implements it."""

from __future__ import annotations

from typing import Protocol

from barnabas.protocol.message import Message


class ControllerRequests(Protocol):
    async def ask(self, request: Message, version: int, timeout_ms: int | None = None) -> Message:
        """The response. Raises KafkaError: Disconnected if no controller is known."""
