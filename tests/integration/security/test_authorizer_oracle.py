"""Random ACLs and requests: our authorizer decides as Apache Kafka's StandardAuthorizer does, whose class runs in one JVM for all."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from random import Random

import pytest

from barnabas.broker.security.authorizer.acl_authorizer import AclAuthorizer
from barnabas.broker.security.authorizer.audit_log import AUDIT_LOGGER
from barnabas.broker.security.authorizer.authorizer import Action
from barnabas.security.acl import AclBinding
from tests import kafka
from tests.unit.broker.security.authorizer import worlds
from tests.unit.broker.security.authorizer.acls import Authorized, session

pytestmark = pytest.mark.java

PROGRAM = Path(__file__).parent / "java" / "AuthorizerOracle.java"
WORLDS = 200
REQUESTS = 25  # of one resource in each world, and as many of any resource
TIMEOUT_S = 120
LOGGING = [
    f"-Dorg.slf4j.simpleLogger.log.{AUDIT_LOGGER}=debug",
    "-Dorg.slf4j.simpleLogger.showThreadName=false",
    "-Dorg.slf4j.simpleLogger.showLogName=false",
]
RULE = re.compile(r"MatchingAcl\(acl=StandardAcl\[resourceType=.*\]\)$")  # of several ACLs that say the same, either may be named


class World:
    """ACLs, a setting, and what is asked about them."""

    def __init__(self, random: Random) -> None:
        self.bindings = worlds.bindings(random)
        self.allow_everyone = random.choice(("true", "false"))
        self.requests = [
            (
                random.choice(worlds.PRINCIPALS),
                random.choice(worlds.HOSTS),
                random.choice(worlds.REQUESTED),
                random.choice(worlds.TYPES),
                worlds.name(random),
            )
            for _ in range(REQUESTS)
        ]

    def lines(self) -> list[str]:
        acls = [_line("acl", *_words(binding)) for binding in self.bindings]
        words = [(principal, host, operation.name, kind.name, name) for principal, host, operation, kind, name in self.requests]
        questions = [line for word in words for line in (_line("one", *word), _line("any", *word[:4]))]
        return [*acls, _line("world", self.allow_everyone), *questions]

    def decisions(self) -> list[bool]:
        properties = {"super.users": "User:super", "allow.everyone.if.no.acl.found": self.allow_everyone}
        with Authorized(properties) as authorized:
            authorized.add(*self.bindings)
            return [decision for request in self.requests for decision in _decisions(authorized.authorizer, *request)]


def _decisions(authorizer: AclAuthorizer, principal: str, host: str, operation: object, kind: object, name: str) -> tuple[bool, bool]:
    client = session(principal, host)
    action = Action(operation, kind, name, True, True, "Fetch")  # type: ignore[arg-type]
    return authorizer.authorize(client, action), authorizer.authorize_by_resource_type(client, operation, kind, "Fetch")  # type: ignore[arg-type]


def _words(binding: AclBinding) -> list[str]:
    pattern, entry = binding.pattern, binding.entry
    resource = [pattern.resource_type.name, pattern.name, pattern.pattern_type.name]
    return [*resource, entry.principal, entry.host, entry.operation.name, entry.permission_type.name]


def _line(*words: str) -> str:
    return "\t".join(words) + "\n"


def _oracle(text: str) -> tuple[list[bool], list[str]]:
    """The decisions of Kafka's class, and the lines of its audit log."""
    command = kafka.source_command(kafka.available(kafka.prepare), PROGRAM)
    command[1:1] = LOGGING
    done = subprocess.run(command, input=text, capture_output=True, encoding="utf-8", timeout=TIMEOUT_S, check=True)
    return [line == "true" for line in done.stdout.split()], done.stderr.splitlines()


def _comparable(lines: list[str]) -> list[str]:
    return [RULE.sub("MatchingAcl", line) for line in lines if "Principal = " in line]


def test_our_authorizer_decides_and_logs_as_kafkas_does(caplog: pytest.LogCaptureFixture) -> None:
    random = Random(4200)
    played = [World(random) for _ in range(WORLDS)]
    theirs, their_log = _oracle("".join(line for world in played for line in world.lines()))
    with caplog.at_level("DEBUG", AUDIT_LOGGER):
        ours = [decision for world in played for decision in world.decisions()]
    assert len(theirs) == 2 * WORLDS * REQUESTS
    assert ours == theirs
    assert 0.1 < sum(ours) / len(ours) < 0.9
    our_log = [f"{record.levelname} {record.getMessage()}" for record in caplog.records if record.name == AUDIT_LOGGER]
    assert _comparable(our_log) == _comparable(their_log)
