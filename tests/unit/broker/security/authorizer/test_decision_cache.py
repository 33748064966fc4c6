from __future__ import annotations

from barnabas.broker.security.authorizer.acl_index import DEFAULT_ALLOW, DEFAULT_DENY
from barnabas.broker.security.authorizer.decision_cache import DECISIONS_MAX, NAME_MAX, DecisionCache
from barnabas.broker.security.session import Session
from barnabas.security.acl import ResourceType
from barnabas.security.operations import AclOperation
from barnabas.security.principal import KafkaPrincipal

READ, TOPIC = AclOperation.READ, ResourceType.TOPIC


def a_session(name: str = "alice", host: str = "10.0.0.1") -> Session:
    return Session(KafkaPrincipal("User", name), host)


def test_a_decision_is_kept_for_its_client_operation_and_resource() -> None:
    cache, session = DecisionCache(), a_session()
    cache.add(session, READ, TOPIC, "orders", DEFAULT_ALLOW)
    assert cache.get(session, READ, TOPIC, "orders") is DEFAULT_ALLOW
    assert cache.get(session, AclOperation.WRITE, TOPIC, "orders") is None
    assert cache.get(session, READ, ResourceType.GROUP, "orders") is None
    assert cache.get(session, READ, TOPIC, "payments") is None


def test_sessions_of_one_principal_and_host_share_decisions_and_others_do_not() -> None:
    cache = DecisionCache()
    cache.add(a_session(), READ, TOPIC, "orders", DEFAULT_DENY)
    assert cache.get(a_session(), READ, TOPIC, "orders") is DEFAULT_DENY
    assert cache.get(a_session(name="bob"), READ, TOPIC, "orders") is None
    assert cache.get(a_session(host="10.0.0.2"), READ, TOPIC, "orders") is None


def test_a_session_does_not_use_the_decisions_that_it_keeps_once_they_are_cleared() -> None:
    cache, session = DecisionCache(), a_session()
    cache.add(session, READ, TOPIC, "orders", DEFAULT_ALLOW)
    cache.clear()
    assert cache.get(session, READ, TOPIC, "orders") is None


def test_a_session_does_not_carry_decisions_to_another_authorizer() -> None:
    session = a_session()
    DecisionCache().add(session, READ, TOPIC, "orders", DEFAULT_ALLOW)
    assert DecisionCache().get(session, READ, TOPIC, "orders") is None


def test_the_number_of_decisions_is_bounded() -> None:
    cache, session = DecisionCache(), a_session()
    for number in range(DECISIONS_MAX + 10):
        cache.add(session, READ, TOPIC, f"t{number}", DEFAULT_ALLOW)
    assert cache.size == 10
    assert cache.get(session, READ, TOPIC, "t0") is None
    assert cache.get(session, READ, TOPIC, f"t{DECISIONS_MAX + 9}") is DEFAULT_ALLOW


def test_idle_sessions_hold_no_decisions_of_before_a_clear() -> None:
    """Otherwise each connection of a client could keep a full cache of its own."""
    cache, sessions = DecisionCache(), [a_session(), a_session("bob")]
    for session in sessions:
        cache.add(session, READ, TOPIC, "orders", DEFAULT_DENY)
    cache.clear()
    assert [session.decisions.by_kind for session in sessions if session.decisions is not None] == [{}, {}]


def test_long_names_are_not_kept() -> None:
    cache, session = DecisionCache(), a_session()
    cache.add(session, READ, TOPIC, "t" * (NAME_MAX + 1), DEFAULT_ALLOW)
    assert cache.size == 0


def test_the_number_of_clients_is_bounded() -> None:
    cache = DecisionCache()
    for number in range(DECISIONS_MAX + 10):
        cache.get(a_session(f"user{number}"), READ, TOPIC, "orders")
    assert len(cache._clients) == 10
