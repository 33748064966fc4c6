"""The questions that handlers ask about the client of a request."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from barnabas.broker.requests.request import Request
from barnabas.broker.security.access import Access
from barnabas.broker.security.authorizer.audit_log import AUDIT_LOGGER
from barnabas.broker.security.authorizer.authorizer import Action, Authorizer
from barnabas.broker.security.session import Session
from barnabas.protocol.messages.fetch_request import FetchRequest
from barnabas.security.acl import ResourceType
from barnabas.security.errors import ClusterAuthorization
from barnabas.security.operations import AclOperation
from tests.unit.broker.handlers.asking import request_of
from tests.unit.broker.security.authorizer.acls import Authorized, acl, session

TOPIC, READ = ResourceType.TOPIC, AclOperation.READ


class Recorder(Authorizer):
    """Allows what is about names with an `a`, and records what it is asked."""

    def __init__(self) -> None:
        self.actions: list[Action] = []

    def authorize(self, session: Session, action: Action) -> bool:
        self.actions.append(action)
        return "a" in action.name and action.operation is READ


def request() -> Request[Any]:
    made = request_of(FetchRequest(), 4)
    made.connection.session = session()
    return made


def test_without_an_authorizer_everything_is_allowed() -> None:
    access = Access(None)
    assert access.is_open
    assert access.allows(request(), READ, TOPIC, "b")
    assert access.allows_on_any(request(), READ, TOPIC)
    assert access.allowed(request(), READ, TOPIC, ["a", "b", "a"]) == {"a", "b"}
    assert access.operations(request(), 0b1000, TOPIC, "b") == 0b1000
    access.require_on_cluster(request(), AclOperation.ALTER)


def test_names_are_decided_once_with_the_number_of_their_occurrences() -> None:
    recorder = Recorder()
    assert Access(recorder).allowed(request(), READ, TOPIC, iter(["a", "b", "a"]), True, False) == {"a"}
    seen = [(action.name, action.reference_count, action.logs_allowed, action.logs_denied, action.api) for action in recorder.actions]
    assert seen == [("a", 2, True, False, "Fetch"), ("b", 1, True, False, "Fetch")]


def test_operations_are_a_bit_field_and_not_logged() -> None:
    recorder = Recorder()
    supported = 1 << READ | 1 << AclOperation.WRITE
    assert Access(recorder).operations(request(), supported, TOPIC, "a") == 1 << READ
    assert {(action.logs_allowed, action.logs_denied) for action in recorder.actions} == {(False, False)}


def test_what_the_cluster_requires_is_asked_of_the_cluster() -> None:
    recorder = Recorder()
    with pytest.raises(ClusterAuthorization):
        Access(recorder).require_on_cluster(request(), AclOperation.ALTER)
    (action,) = recorder.actions
    assert (action.resource_type, action.name) == (ResourceType.CLUSTER, "kafka-cluster")


def test_any_resource_is_asked_with_the_name_of_the_request() -> None:
    recorder = Recorder()
    assert Access(recorder).allows_on_any(request(), READ, TOPIC)  # "hardcode" has an a
    assert [(action.api, action.reference_count) for action in recorder.actions] == [("Fetch", 0)]


def test_a_request_is_decided_anew_once_an_acl_changes() -> None:
    with Authorized() as broker:
        access, asking = Access(broker.authorizer), request()
        broker.add(acl("orders", READ))
        assert [access.allows(asking, READ, TOPIC, "orders") for _ in range(2)] == [True, True]
        broker.run(broker.authorizer.delete_acls(session(), [acl("orders", READ).to_filter()]))
        assert not access.allows(asking, READ, TOPIC, "orders")


def test_an_allowed_request_that_was_decided_before_is_logged_once_the_audit_log_has_the_level_debug(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with Authorized() as broker:
        access, asking = Access(broker.authorizer), request()
        broker.add(acl("orders", READ))
        for level, lines in ((logging.INFO, 0), (logging.DEBUG, 2), (logging.INFO, 0)):
            caplog.clear()
            with caplog.at_level(level, AUDIT_LOGGER):
                assert [access.allows(asking, READ, TOPIC, "orders") for _ in range(2)] == [True, True]
            assert len([record for record in caplog.records if record.name == AUDIT_LOGGER]) == lines
