from __future__ import annotations

from random import Random

import pytest

from barnabas.broker.clock import Clock
from barnabas.broker.config import BrokerConfig
from barnabas.broker.security.credentials import Credentials
from barnabas.broker.security.session import Session
from barnabas.broker.server.token_config import delegation_tokens
from barnabas.metadata.client import TreeClient
from barnabas.metadata.local import LocalTree
from barnabas.security.principal import ANONYMOUS, KafkaPrincipal


@pytest.mark.parametrize(("name", "is_enabled"), [("secret", True), ("master", True), (None, False)])
def test_a_secret_key_enables_tokens_also_by_its_former_name(name: str | None, is_enabled: bool) -> None:
    settings = {"listeners": "PLAINTEXT://:9092,SSL://:9093"} | ({} if name is None else {f"delegation.token.{name}.key": "x"})
    tree = TreeClient(LocalTree(lambda: 0), lambda: None)
    tokens = delegation_tokens(BrokerConfig.from_properties(settings), tree, Credentials(), Clock(), Random(1))
    assert tokens.is_enabled == is_enabled
    alice, anonymous = (Session(principal, "127.0.0.1") for principal in (KafkaPrincipal("User", "alice"), ANONYMOUS))
    assert [tokens.allows_requests(session, "SSL") for session in (alice, anonymous)] == [True, False]
    assert not tokens.allows_requests(alice, "PLAINTEXT")
