"""Plays the scenarios with every client against a broker: which mechanisms let it in, and the error it gets where it may not go on."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from tests.integration.security.clients import process_clients
from tests.integration.security.clients.kcat_client import Kcat
from tests.integration.security.clients.login import VALUE, WAIT_S, LoggedIn, LogIn, Login, Refused
from tests.integration.security.clients.peers import (
    ELSEWHERE,
    EXPIRED,
    MECHANISMS,
    PASSWORD,
    SECURE,
    SESSION_MS,
    SHORT,
    TOPIC,
    USER,
    Peer,
    create_topic,
)
from tests.integration.security.clients.python_clients import AioKafka, Barnabas, Confluent, KafkaPython

Outcomes = dict[str, dict[str, str]]  # by client, then by scenario
LET_IN = "let in"
JAVA_VERSIONS = ("4.2.0", "2.8.2")
CLIENTS = ("confluent", "kafka_python", "aiokafka", "barnabas", "kcat", "kafkajs", *(f"java-{version}" for version in JAVA_VERSIONS))

REVOKED = "an ACL is revoked while it is connected"
IN_PYTHON: dict[str, LogIn] = {
    "confluent": Confluent,
    "kafka_python": KafkaPython,
    "aiokafka": AioKafka,
    "barnabas": Barnabas,
    "kcat": Kcat,
}

# kcat has no way to be given a token, and does not stay connected. aiokafka waits for ever after a token that was refused.
_LEFT_OUT = {"kcat": ("OAUTHBEARER", "token", "session", REVOKED), "aiokafka": ("token",)}
AT_ONCE = 16  # most scenarios wait


def scenarios_of(client: str) -> list[str]:
    return [name for name in SCENARIOS if not any(word in name for word in _LEFT_OUT.get(client, ()))]


def played(peer: Peer, directory: Path) -> Outcomes:
    """Clients in a process of their own play their scenarios one after the other, those in Python side by side."""
    with _clients(directory) as log_ins, ThreadPoolExecutor(AT_ONCE) as pool:
        turns = [(client, scenarios_of(client)) for client in log_ins if client not in IN_PYTHON]
        turns += [(client, [name]) for name in reversed(SCENARIOS) for client in IN_PYTHON if name in scenarios_of(client)]
        outcomes: Outcomes = {client: {} for client in log_ins}
        for client, some in pool.map(lambda turn: (turn[0], _play(peer, turn[0], turn[1], log_ins[turn[0]])), turns):
            outcomes[client] |= some
        return outcomes


def _play(peer: Peer, client: str, names: list[str], log_in: LogIn) -> dict[str, str]:
    return {name: SCENARIOS[name](peer, client, log_in) for name in names}


@contextmanager
def _clients(directory: Path) -> Generator[dict[str, LogIn], None, None]:
    with ExitStack() as running:
        processes = {f"java-{version}": process_clients.java(version, directory) for version in JAVA_VERSIONS}
        processes["kafkajs"] = process_clients.kafkajs(directory)
        for process in processes.values():
            running.callback(process.close)
        yield IN_PYTHON | {name: process.log_in for name, process in processes.items()}


def _login(peer: Peer, mechanism: str, listener: str = SECURE) -> Login:
    return Login(peer.addresses[listener], peer.stores.authority, TOPIC, mechanism, USER, PASSWORD, peer.issuer.token(USER))


def send_and_read(client: LoggedIn) -> None:
    client.send()
    assert client.read() == VALUE


def send_for_two_sessions(client: LoggedIn) -> None:
    end = time.monotonic() + 2.5 * SESSION_MS / 1000
    while time.monotonic() < end:
        client.send()


def _let_in(mechanism: str, peer: Peer, _: str, log_in: LogIn) -> str:
    return outcome(log_in, _login(peer, mechanism), send_and_read)


def _wrong_password(mechanism: str, peer: Peer, _: str, log_in: LogIn) -> str:
    return _refusal(log_in, replace(_login(peer, mechanism), password="guessed"))


def _unknown_user(mechanism: str, peer: Peer, _: str, log_in: LogIn) -> str:
    return _refusal(log_in, replace(_login(peer, mechanism), user="nobody"))


def _forged_token(peer: Peer, _: str, log_in: LogIn) -> str:
    return _refusal(log_in, replace(_login(peer, "OAUTHBEARER"), token=peer.issuer.forged(USER)))


def _certificate(listener: str, peer: Peer, _: str, log_in: LogIn) -> str:
    return _refusal(log_in, _login(peer, "PLAIN", listener))


def _revoked(peer: Peer, client: str, log_in: LogIn) -> str:
    topic = f"revoked-{client}"
    with peer.admin() as admin:
        acl = create_topic(admin, topic)

        def send_until_refused(client: LoggedIn) -> None:
            client.send()
            admin.delete_acls([acl.to_filter()]).all()
            deadline = time.monotonic() + WAIT_S
            while time.monotonic() < deadline:
                client.send()

        return outcome(log_in, replace(_login(peer, "PLAIN"), topic=topic), send_until_refused)


def _session_expires(mechanism: str, peer: Peer, _: str, log_in: LogIn) -> str:
    return outcome(log_in, _login(peer, mechanism, SHORT), send_for_two_sessions)


SCENARIOS: dict[str, Callable[[Peer, str, LogIn], str]] = {
    **{mechanism: partial(_let_in, mechanism) for mechanism in MECHANISMS},
    "a wrong password, PLAIN": partial(_wrong_password, "PLAIN"),
    "a wrong password, SCRAM-SHA-256": partial(_wrong_password, "SCRAM-SHA-256"),
    "an unknown user, SCRAM-SHA-512": partial(_unknown_user, "SCRAM-SHA-512"),
    "a forged token": _forged_token,
    "an expired certificate": partial(_certificate, EXPIRED),
    "the certificate of another host": partial(_certificate, ELSEWHERE),
    REVOKED: _revoked,
    "the session expires, PLAIN": partial(_session_expires, "PLAIN"),
    "the session expires, SCRAM-SHA-512": partial(_session_expires, "SCRAM-SHA-512"),
}


def _refusal(log_in: LogIn, login: Login) -> str:
    return outcome(log_in, replace(login, is_good=False), lambda client: client.send())


def outcome(log_in: LogIn, login: Login, work: Callable[[LoggedIn], None]) -> str:
    client = log_in(login)
    try:
        work(client)
    except Refused as refused:
        return _without_places(str(refused))
    finally:
        client.close()
    return LET_IN


# What differs from one run to the next: ports, ids of nodes, times, counts, and the thread of librdkafka.
_PLACES = (
    (re.compile(r"localhost(:|', )\d+"), "localhost:PORT"),
    (re.compile(r"PORT/(\d+|bootstrap)"), "PORT/NODE"),
    (re.compile(r"\(?node_id=[^\s,)]+"), "node_id=NODE"),
    (re.compile(r"[Nn]ode -?\d+"), "node NODE"),
    (re.compile(r" \(after \d+ms in state [^)]*\)"), ""),
    (re.compile(r"revoked-[\w.-]*\w"), "revoked-TOPIC"),
)


def _without_places(text: str) -> str:
    for pattern, replacement in _PLACES:
        text = pattern.sub(replacement, text)
    return text.strip()
