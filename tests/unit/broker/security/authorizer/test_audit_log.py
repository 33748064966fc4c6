"""The audit log: one line a decision, denied ones at INFO, allowed ones at DEBUG."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import pytest

from barnabas.broker.config.log_levels import LogLevels
from barnabas.broker.security.authorizer.audit_log import AUDIT_LOGGER
from barnabas.broker.security.authorizer.authorizer import Action
from barnabas.loggers import TRACE
from barnabas.security.acl import ResourceType
from barnabas.security.operations import AclOperation
from tests.unit.broker.security.authorizer.acls import Authorized, acl, session

READ, WRITE = AclOperation.READ, AclOperation.WRITE
FROM = "from host = 10.0.0.1 on resource = Topic:LITERAL:orders for request = Fetch with resourceRefCount = 1"


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    with caplog.at_level(TRACE, AUDIT_LOGGER):
        yield caplog


def asked(broker: Authorized, action: Action, lines: pytest.LogCaptureFixture, principal: str = "User:alice") -> tuple[int, str]:
    lines.clear()
    broker.authorizer.authorize(session(principal), action)
    (record,) = [record for record in lines.records if record.name == AUDIT_LOGGER]
    return record.levelno, record.getMessage()


def action(operation: AclOperation, name: str = "orders", *, logs_allowed: bool = True, logs_denied: bool = True) -> Action:
    return Action(operation, ResourceType.TOPIC, name, logs_allowed, logs_denied, "Fetch")


def test_every_decision_has_a_line_with_its_rule_cached_or_not(lines: pytest.LogCaptureFixture) -> None:
    with Authorized({"super.users": "User:admin"}) as broker:
        broker.add(acl("orders", READ))
        for _ in range(2):
            assert asked(broker, action(READ), lines) == (
                logging.DEBUG,
                f"Principal = User:alice is Allowed operation = READ {FROM} based on rule MatchingAcl(acl=StandardAcl[resourceType=TOPIC, "
                "resourceName=orders, patternType=LITERAL, principal=User:alice, host=*, operation=READ, permissionType=ALLOW])",
            )
            assert asked(broker, action(WRITE), lines) == (
                logging.INFO,
                f"Principal = User:alice is Denied operation = WRITE {FROM} based on rule DefaultDeny",
            )
        level, line = asked(broker, action(WRITE), lines, "User:admin")
        assert (level, line.rpartition(" ")[2]) == (logging.DEBUG, "SuperUser")


def test_decisions_that_only_filter_a_list_are_at_trace(lines: pytest.LogCaptureFixture) -> None:
    with Authorized() as broker:
        broker.add(acl("orders", READ))
        assert asked(broker, action(READ, logs_allowed=False), lines)[0] == TRACE
        assert asked(broker, action(WRITE, logs_denied=False), lines)[0] == TRACE
        assert asked(broker, action(WRITE, logs_allowed=False), lines)[0] == logging.INFO


def test_the_json_form_has_a_field_for_each_fact(lines: pytest.LogCaptureFixture) -> None:
    with Authorized({"barnabas.authorizer.log.json": "true"}) as broker:
        _, line = asked(broker, action(READ), lines)
        assert json.loads(line) == {
            "principal": "User:alice",
            "result": "Denied",
            "operation": "READ",
            "host": "10.0.0.1",
            "resourceType": "TOPIC",
            "resourceName": "orders",
            "request": "Fetch",
            "resourceRefCount": 1,
            "rule": "DefaultDeny",
        }


@pytest.mark.parametrize("is_json", ["true", "false"])
def test_a_name_cannot_forge_a_line(lines: pytest.LogCaptureFixture, is_json: str) -> None:
    with Authorized({"barnabas.authorizer.log.json": is_json}) as broker:
        _, line = asked(broker, action(READ, "a\nPrincipal = User:alice is Allowed\u2028\x1b[2J"), lines, "User:al\rice")
        assert line.isprintable()
        assert "a\\nPrincipal" in line


def test_denied_actions_are_logged_where_the_broker_logs_warnings_only() -> None:
    logger = logging.getLogger(AUDIT_LOGGER)
    logger.setLevel(logging.NOTSET)
    with Authorized():
        assert LogLevels().levels()[AUDIT_LOGGER] == "INFO"
    logger.setLevel(logging.ERROR)
    with Authorized():
        assert LogLevels().levels()[AUDIT_LOGGER] == "ERROR"
    logger.setLevel(logging.NOTSET)
