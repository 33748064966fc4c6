"""Who was not answered: by frames on a connection, in whatever pieces they are sent."""

from __future__ import annotations

import pytest

from barnabas.simulation.conversations import Conversation, Conversations
from barnabas.simulation.world import World

FETCH, METADATA = 1, 3


class TestConversations:
    @pytest.fixture(autouse=True)
    def two_talk(self) -> None:
        self.world = World(0)
        self.conversations = Conversations(self.world)
        self.conversation = self.conversations.begin("clients", "broker-1")

    def unanswered(self, since: float = 0.0, longer_than_s: float = 0.0) -> list[str]:
        return [str(conversation) for conversation in self.conversations.unanswered(since, longer_than_s)]

    def test_an_answer_ends_the_first_that_waits(self) -> None:
        self.conversation.client_sent(request(FETCH) + request(METADATA))
        self.conversation.server_sent(frame(b"here it is"))
        self.world.run_for(1.0)
        assert self.unanswered() == ["Metadata from clients to broker-1 was not answered in 1.0 s"]

    def test_frames_may_come_in_pieces(self) -> None:
        in_pieces(self.conversation, request(FETCH), frame(b"all of it"))
        self.world.run_for(1.0)
        assert self.unanswered() == []

    def test_half_an_answer_is_none(self) -> None:
        self.conversation.client_sent(request(FETCH))
        self.conversation.server_sent(frame(b"half of it")[:-1])
        self.world.run_for(1.0)
        assert len(self.unanswered()) == 1

    def test_who_gives_up_was_not_answered(self) -> None:
        self.conversation.client_sent(request(FETCH))
        self.world.run_for(4.0)
        self.conversation.closed_by_client()
        self.world.run_for(4.0)
        assert self.unanswered() == ["Fetch from clients to broker-1 was not answered in 4.0 s"]

    def test_a_connection_that_is_closed_is_an_answer(self) -> None:
        self.conversation.client_sent(request(FETCH))
        self.world.run_for(4.0)
        self.conversation.closed_by_server()
        self.conversation.closed_by_client()
        assert self.unanswered() == []

    def test_who_stands_behind_another_is_not_counted_yet(self) -> None:
        self.conversation.client_sent(request(FETCH) + request(METADATA))
        self.world.run_for(4.0)
        self.conversation.server_sent(frame(b"at last"))
        self.world.run_for(1.0)
        assert self.unanswered() == ["Metadata from clients to broker-1 was not answered in 1.0 s"]

    def test_what_was_asked_before_or_waits_for_a_moment_is_left_out(self) -> None:
        self.conversation.client_sent(request(FETCH))
        self.world.run_for(2.0)
        self.conversations.begin("clients", "broker-2").client_sent(request(METADATA))
        self.world.run_for(2.0)
        assert len(self.unanswered()) == 2
        assert len(self.unanswered(longer_than_s=3.0)) == 1
        assert len(self.unanswered(since=1.0)) == 1


def in_pieces(conversation: Conversation, request: bytes, answered: bytes) -> None:
    for at in range(len(request)):
        conversation.client_sent(request[at : at + 1])
    for at in range(len(answered)):
        conversation.server_sent(answered[at : at + 1])


def request(api_key: int) -> bytes:
    return frame(api_key.to_bytes(2, "big") + b"and so on")


def frame(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data
