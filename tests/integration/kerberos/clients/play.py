"""Plays the scenarios of Kerberos with every client that has GSSAPI: which tickets let it in, and the error that it gets without.

confluent-kafka's wheel and kafkajs have no GSSAPI, and kcat has it by a module of Cyrus SASL that Debian does not install with it.
A client in Python takes its tickets from KRB5CCNAME, which is one for a process, so each scenario has a process of its own.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.integration.security.clients import peers, play, process_clients
from tests.integration.security.clients.login import LoggedIn, Login
from tests.integration.security.clients.peers import SECURE, SHORT, TOPIC, USER, Peer
from tests.integration.security.clients.play import JAVA_VERSIONS, Outcomes
from tests.kerberos import REALM, Kdc

STRANGER = "mallory"  # has no ACL
CLIENTS = ("kafka_python", "aiokafka", "barnabas", *(f"java-{version}" for version in JAVA_VERSIONS))
_MODULE = "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true"
_AT_ONCE = 4
_TIMEOUT_S = 120


SEND, SEND_AND_READ, SEND_FOR_TWO_SESSIONS = "send", "send and read", "send for two sessions"
_WORKS: dict[str, Callable[[LoggedIn], None]] = {
    SEND: lambda client: client.send(),
    SEND_AND_READ: play.send_and_read,
    SEND_FOR_TWO_SESSIONS: play.send_for_two_sessions,
}


@dataclass(frozen=True)
class Scenario:
    """`user` has a ticket; without a user the cache is missing. `other` is a service whose key the broker does not have."""

    work: str = SEND
    user: str | None = USER
    service: str = "kafka"
    listener: str = SECURE


UNKNOWN_SERVICE = "a service that the key distribution center does not know"
SCENARIOS = {
    "a ticket": Scenario(SEND_AND_READ),
    "a ticket of a user without ACLs": Scenario(user=STRANGER),
    "no ticket": Scenario(user=None),
    "a ticket for another service": Scenario(service="other"),
    UNKNOWN_SERVICE: Scenario(service="unknown"),
    "the session expires": Scenario(SEND_FOR_TWO_SESSIONS, listener=SHORT),
}


def scenarios_of(client: str) -> list[str]:
    """Java tries a service that is not known again and again, with every broker, until the record has timed out."""
    return [name for name in SCENARIOS if name != UNKNOWN_SERVICE or not client.startswith("java")]


@contextmanager
def apache_kafka(directory: Path, kdc: Kdc) -> Generator[Peer, None, None]:
    with peers.apache_kafka(directory, _settings(kdc), [_krb5_option(kdc)]) as peer:
        yield peer


@contextmanager
def own_broker(directory: Path, kdc: Kdc) -> Generator[Peer, None, None]:
    with peers.own_broker(directory, _settings(kdc)) as peer:
        yield peer


def _settings(kdc: Kdc) -> dict[str, str]:
    jaas = f'{_MODULE} keyTab="{kdc.keytab("kafka/localhost")}" principal="kafka/localhost@{REALM}" serviceName="kafka";'
    settings = {f"listener.name.{listener.lower()}.gssapi.sasl.jaas.config": jaas for listener in peers.SASL_LISTENERS}
    return settings | {
        "sasl.enabled.mechanisms": "GSSAPI",
        "listener.name.short.gssapi.connections.max.reauth.ms": str(peers.SESSION_MS),
    }


def _krb5_option(kdc: Kdc) -> str:
    return f"-Djava.security.krb5.conf={kdc.config}"


def played(peer: Peer, kdc: Kdc, directory: Path) -> Outcomes:
    """Clients in a process of their own play their scenarios one after the other."""
    kdc.keytab("other/localhost")
    caches = {user: kdc.tickets(user) for user in (USER, STRANGER)} | {None: directory / "no-tickets"}
    turns = [(client, name) for client in CLIENTS for name in scenarios_of(client)]
    with ExitStack() as running, ThreadPoolExecutor(_AT_ONCE) as pool:
        processes = {f"java-{version}": process_clients.java(version, directory, [_krb5_option(kdc)]) for version in JAVA_VERSIONS}
        for process in processes.values():
            running.callback(process.close)

        def outcome(turn: tuple[str, str]) -> str:
            client, name = turn
            scenario = SCENARIOS[name]
            cache = caches[scenario.user]
            if client in processes:
                text = play.outcome(processes[client].log_in, _login(peer, scenario, cache), _WORKS[scenario.work])
            else:
                text = _in_process(client, scenario, _login(peer, scenario, cache), kdc)
            return _without_places(text, cache)

        outcomes: Outcomes = {client: {} for client in CLIENTS}
        for (client, name), text in zip(turns, pool.map(outcome, turns), strict=True):
            outcomes[client][name] = text
        return outcomes


def _login(peer: Peer, scenario: Scenario, cache: Path) -> Login:
    """The process of Java has all users, so it is given the cache and the service as it is given passwords and tokens."""
    address, is_good = peer.addresses[scenario.listener], scenario.user is not None and scenario.service == "kafka"
    return Login(address, peer.stores.authority, TOPIC, "GSSAPI", "", str(cache), scenario.service, is_good, scenario.service)


def _in_process(client: str, scenario: Scenario, login: Login, kdc: Kdc) -> str:
    words = json.dumps(asdict(login) | {"authority": str(login.authority)})
    done = subprocess.run(
        [sys.executable, "-m", __name__, client, scenario.work, words],
        cwd=Path(__file__).parents[4],
        env={**os.environ, **kdc.environment, "KRB5CCNAME": f"FILE:{login.password}"},
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return str(json.loads(done.stdout.splitlines()[-1]))


def _without_places(text: str, cache: Path) -> str:
    return re.sub(r"/[^ ]*replay[^ ]*", "REPLAY", text.replace(str(cache), "CACHE"))


def main(client: str, work: str, words: str) -> None:
    from gssapi.raw.misc import GSSError  # the extra may be missing

    values = json.loads(words)
    login = Login(**values | {"authority": Path(values["authority"])})
    try:
        text = play.outcome(play.IN_PYTHON[client], login, _WORKS[work])
    except GSSError as error:  # of kafka-python and aiokafka, which do not make it an error of theirs
        text = f"{type(error).__name__}: {error}"
    print(json.dumps(text), flush=True)
    os._exit(0)  # refused clients leave threads and sockets behind


if __name__ == "__main__":
    main(*sys.argv[1:])
