"""Answers from ACLs: what a user may do and who may do something, by the rules of the broker's authorizer."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from barnabas.administration.acl_answers import ANY_HOST, EVERYBODY, decide, operations_of, what_may, who_may
from barnabas.broker.security.authorizer.acl_index import AclIndex
from barnabas.security.acl import (
    AccessControlEntry,
    AclBinding,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from barnabas.security.operations import AclOperation

ALICE, BOB = "User:alice", "User:bob"
ALLOW, DENY = AclPermissionType.ALLOW, AclPermissionType.DENY
READ, WRITE, DESCRIBE = AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE


def topic(name: str, prefixed: bool = False) -> ResourcePattern:
    return ResourcePattern(ResourceType.TOPIC, name, PatternType.PREFIXED if prefixed else PatternType.LITERAL)


def acl(
    pattern: ResourcePattern, principal: str, operation: AclOperation, permission: AclPermissionType = ALLOW, host: str = "*"
) -> AclBinding:
    return AclBinding(pattern, AccessControlEntry(principal, host, operation, permission))


def names(answers: object) -> list[tuple[str, str, bool]]:
    return [(one.principal, one.host, one.is_allowed) for one in answers]  # type: ignore[attr-defined]


def test_a_denial_prevails_over_every_permission() -> None:
    acls = [acl(topic("orders"), ALICE, WRITE), acl(topic("*"), EVERYBODY, WRITE, DENY)]
    answer = decide(acls, ALICE, ANY_HOST, WRITE, topic("orders"))
    assert (answer.is_allowed, answer.because) == (False, acls[1])


def test_reading_implies_describing_but_a_denial_implies_nothing() -> None:
    assert decide([acl(topic("t"), ALICE, READ)], ALICE, "*", DESCRIBE, topic("t")).is_allowed
    both = [acl(topic("t"), ALICE, DESCRIBE), acl(topic("t"), ALICE, READ, DENY)]
    assert decide(both, ALICE, "*", DESCRIBE, topic("t")).is_allowed


def test_who_may_write_names_everybody_else_and_hosts_that_differ() -> None:
    acls = [
        acl(topic("ord", prefixed=True), ALICE, WRITE),
        acl(topic("orders"), BOB, WRITE, host="10.0.0.1"),
        acl(topic("payments"), BOB, WRITE),
    ]
    assert names(who_may(acls, WRITE, topic("orders"))) == [
        (ALICE, "*", True),
        (BOB, "*", False),
        (BOB, "10.0.0.1", True),
        (EVERYBODY, "*", False),
    ]


def test_without_any_acl_the_cluster_s_default_decides() -> None:
    assert names(who_may([], WRITE, topic("orders"), default=True)) == [(EVERYBODY, "*", True)]
    other = [acl(topic("orders"), BOB, READ)]
    assert names(who_may(other, WRITE, topic("orders"), default=True)) == [(BOB, "*", False), (EVERYBODY, "*", False)]


def test_what_alice_may_do_says_which_names_a_prefix_leaves_out() -> None:
    secret = acl(topic("orders-secret"), ALICE, READ, DENY)
    answers = what_may([acl(topic("orders", prefixed=True), ALICE, READ), secret], ALICE)
    by_resource = {(one.pattern.name, one.operation): one for one in answers}
    assert by_resource["orders", READ].is_allowed
    assert by_resource["orders", READ].except_for == (secret,)
    assert not by_resource["orders-secret", READ].is_allowed
    assert by_resource["orders-secret", DESCRIBE].is_allowed
    assert ("orders", WRITE) not in by_resource


NAMES = st.sampled_from(["a", "ab", "abc", "b", "*"])
BINDINGS = st.lists(
    st.builds(
        acl,
        st.builds(topic, NAMES, st.booleans()),
        st.sampled_from([ALICE, BOB, EVERYBODY]),
        st.sampled_from([READ, WRITE, DESCRIBE, AclOperation.ALL, AclOperation.ALTER_CONFIGS]),
        st.sampled_from([ALLOW, DENY]),
        st.sampled_from(["*", "10.0.0.1"]),
    ),
    max_size=8,
)


@given(BINDINGS, st.sampled_from(["a", "ab", "abd", "c"]), st.sampled_from(operations_of(ResourceType.TOPIC)))
def test_each_answer_is_that_of_the_broker_s_authorizer(bindings: list[AclBinding], name: str, operation: AclOperation) -> None:
    index = AclIndex()
    for pattern in {binding.pattern for binding in bindings}:
        index.replace(pattern, [binding.entry for binding in bindings if binding.pattern == pattern])
    for principal in (ALICE, BOB):
        for host in ("10.0.0.1", "10.0.0.2"):
            expected = index.decide(principal, host, operation, ResourceType.TOPIC, name)
            assert decide(bindings, principal, host, operation, topic(name)).is_allowed == expected.is_allowed
