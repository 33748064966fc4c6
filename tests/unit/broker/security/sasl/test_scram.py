"""SCRAM on the broker's side, against the client of this project."""

from __future__ import annotations

import base64
from random import Random

import pytest

from barnabas.broker.clock import Clock
from barnabas.broker.security.credentials import Credentials, TokenCredential
from barnabas.broker.security.sasl.mechanism import SaslFailure
from barnabas.broker.security.sasl.scram import Scram, ScramExchange
from barnabas.client.network.sasl.scram import Scram as Client
from barnabas.security.errors import IllegalSaslState, SaslAuthentication
from barnabas.security.principal import KafkaPrincipal
from barnabas.security.scram import ScramCredential

NAMES = ["SCRAM-SHA-256", "SCRAM-SHA-512"]
NOW_MS = 1_000_000


class StoppedClock(Clock):
    def now_ms(self) -> int:
        return NOW_MS


def a_server(name: str = "SCRAM-SHA-256", user: str = "alice", iterations: int = 4096) -> Scram:
    credentials = Credentials()
    credentials.set_user(name, user, ScramCredential.of_password(name, "secret", b"salt", iterations))
    return Scram(name, credentials, StoppedClock(), Random(7), b"of this broker")


def run(server: ScramExchange, client: Client) -> None:
    answer: bytes | None = client.begin()
    while answer is not None:
        answer = client.answer(server.evaluate(answer))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("user", ["alice", "a,b=c", "zoë"])
def test_a_user_with_the_password_is_authenticated_and_both_sides_know_it(name: str, user: str) -> None:
    server, client = a_server(name, user).begin(), Client(name, user, "secret")
    run(server, client)
    assert client.is_done
    assert (server.is_complete, server.authorization_id, server.is_token, server.credential_expires_ms) == (True, user, False, None)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("user", "password"), [("alice", "wrong"), ("nobody", "secret"), ("nobody", "")])
def test_a_wrong_password_and_an_unknown_user_fail_in_the_same_message(name: str, user: str, password: str) -> None:
    server, client = a_server(name).begin(), Client(name, user, password)
    final = client.answer(server.evaluate(client.begin()))
    assert final is not None
    with pytest.raises(SaslFailure, match=r"^Invalid client credentials$"):
        server.evaluate(final)
    assert not server.is_complete


def test_the_challenge_of_a_user_takes_the_same_work_as_that_of_an_unknown_one(monkeypatch: pytest.MonkeyPatch) -> None:
    server = a_server()
    unknown = server.unknown
    made: list[str] = []

    def counted(user: str) -> ScramCredential:
        made.append(user)
        return unknown(user)

    monkeypatch.setattr(server, "unknown", counted)
    for user in ("alice", "nobody"):
        challenge(server.begin(), user)
    assert made == ["alice", "nobody"]


def test_an_unknown_user_gets_the_same_salt_each_time_and_another_than_other_users() -> None:
    server = a_server()
    salts = [challenge(server.begin(), user).split(",")[1] for user in ("bob", "bob", "carol")]
    assert salts[0] == salts[1] != salts[2]


@pytest.mark.parametrize("salt", [b"0123456789abcdefghijklmno", b"\xff" * 16, b"\x00" * 20])
def test_the_challenge_of_an_unknown_user_looks_like_that_of_others(salt: bytes) -> None:
    server = a_server()
    server.credentials.set_user("SCRAM-SHA-256", "alice", ScramCredential.of_password("SCRAM-SHA-256", "secret", salt, 8192))
    _, sent_salt, iterations = challenge(server.begin(), "nobody").split(",", 2)
    made = base64.b64decode(sent_salt.removeprefix("s="))
    assert (len(made), made.isalnum(), iterations) == (len(salt), salt.isalnum(), "i=8192")


def challenge(exchange: ScramExchange, user: str) -> str:
    return exchange.evaluate(Client("SCRAM-SHA-256", user, "secret").begin()).decode()


@pytest.mark.parametrize("nonce", ["other", "{client}", "{server}", "x{server}"])
def test_the_nonce_of_the_final_message_must_be_that_of_the_challenge(nonce: str) -> None:
    """CVE-2024-56128: a final message with another nonce may be one of an older exchange."""
    exchange, client = a_server().begin(), Client("SCRAM-SHA-256", "alice", "secret", nonce="mine")
    sent = exchange.evaluate(client.begin())
    server_nonce = sent.decode().split(",")[0].removeprefix("r=")
    final = client.answer(sent)
    assert final is not None
    forged = final.replace(f"r={server_nonce}".encode(), b"r=" + nonce.format(client="mine", server=server_nonce).encode())
    if forged == final:
        exchange.evaluate(final)
        assert exchange.is_complete
        return
    with pytest.raises(SaslFailure, match="Invalid client nonce"):
        exchange.evaluate(forged)


def test_a_failed_exchange_cannot_be_continued() -> None:
    exchange, client = a_server().begin(), Client("SCRAM-SHA-256", "alice", "wrong")
    final = client.answer(exchange.evaluate(client.begin()))
    assert final is not None
    with pytest.raises(SaslFailure):
        exchange.evaluate(final)
    with pytest.raises(IllegalSaslState):
        exchange.evaluate(final)


@pytest.mark.parametrize("gs2", [b"p=tls-server-end-point,,", b"y,,", b"", b"n", b"n,b=alice,"])
def test_channel_binding_is_refused(gs2: bytes) -> None:
    with pytest.raises(SaslFailure, match="client first message"):
        a_server().begin().evaluate(gs2 + b"n=alice,r=nonce")


def test_another_channel_binding_in_the_final_message_is_refused() -> None:
    exchange, client = a_server().begin(), Client("SCRAM-SHA-256", "alice", "secret")
    final = client.answer(exchange.evaluate(client.begin()))
    assert final is not None
    with pytest.raises(SaslFailure, match="channel binding"):
        exchange.evaluate(final.replace(b"c=biws", b"c=" + base64.b64encode(b"y,,")))


def test_an_authorization_id_that_is_not_the_user_is_refused() -> None:
    """CVE-2017-12610."""
    with pytest.raises(SaslAuthentication, match="Client requested an authorization id that is different from username"):
        a_server().begin().evaluate(b"n,a=admin,n=alice,r=nonce")
    assert a_server().begin().evaluate(b"n,a=alice,n=alice,r=nonce")


@pytest.mark.parametrize("extensions", [",custom=x", ",a=b,c=d", ",tokenauth=false"])
def test_extensions_that_the_broker_does_not_know_are_ignored(extensions: str) -> None:
    exchange, client = a_server().begin(), Client("SCRAM-SHA-256", "alice", "secret")
    client._first += extensions  # the client signs what it sends
    run(exchange, client)
    assert exchange.authorization_id == "alice"


@pytest.mark.parametrize("first", [b"n,,m=must,n=alice,r=nonce", b"n,,n=,r=nonce", b"n,,n=a=b,r=nonce", b"n,,n=alice,r=", b"\xff", b""])
def test_a_message_that_cannot_be_read_is_refused(first: bytes) -> None:
    with pytest.raises(SaslFailure):
        a_server().begin().evaluate(first)


@pytest.mark.parametrize("final", [b"", b"c=biws,r=x", b"c=biws,r=x,p=!!", b"c=biws,r=x,p=a", b"\xff", b"c=biws,r={nonce},p=AAAA"])
def test_a_final_message_that_cannot_be_read_is_refused(final: bytes) -> None:
    exchange = a_server().begin()
    nonce = challenge(exchange, "alice").split(",")[0].removeprefix("r=")
    with pytest.raises(SaslFailure):
        exchange.evaluate(final.replace(b"{nonce}", nonce.encode()))


@pytest.mark.parametrize(("iterations", "is_accepted"), [(4095, False), (4096, True), (16384, True)])
def test_a_credential_of_few_iterations_is_not_used(iterations: int, is_accepted: bool) -> None:
    exchange, client = a_server(iterations=iterations).begin(), Client("SCRAM-SHA-256", "alice", "secret")
    if is_accepted:
        run(exchange, client)
    else:
        with pytest.raises(SaslFailure):
            run(exchange, client)
    assert exchange.is_complete is is_accepted


def with_token(expires_ms: int) -> Scram:
    server = a_server()
    credential = ScramCredential.of_password("SCRAM-SHA-256", "hmac", b"salt", 4096)
    server.credentials.set_token("SCRAM-SHA-256", "token-id", TokenCredential(credential, KafkaPrincipal("User", "owner"), expires_ms))
    return server


def test_a_delegation_token_authenticates_its_owner_until_it_expires() -> None:
    exchange = with_token(NOW_MS + 5000).begin()
    run(exchange, Client("SCRAM-SHA-256", "token-id", "hmac", token_auth=True))
    assert (exchange.authorization_id, exchange.is_token, exchange.credential_expires_ms) == ("owner", True, NOW_MS + 5000)


@pytest.mark.parametrize("expires_ms", [NOW_MS, NOW_MS - 1])
def test_an_expired_delegation_token_is_refused_like_an_unknown_one(expires_ms: int) -> None:
    exchange = with_token(expires_ms).begin()
    with pytest.raises(SaslFailure, match="Invalid client credentials"):
        run(exchange, Client("SCRAM-SHA-256", "token-id", "hmac", token_auth=True))
    assert not exchange.is_complete


def test_a_user_is_no_token_and_a_token_is_no_user() -> None:
    for client in (Client("SCRAM-SHA-256", "alice", "secret", token_auth=True), Client("SCRAM-SHA-256", "token-id", "hmac")):
        with pytest.raises(SaslFailure):
            run(with_token(NOW_MS + 5000).begin(), client)
