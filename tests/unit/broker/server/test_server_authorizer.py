"""A broker with authorizer.class.name has read all ACLs when its start returns, and does not start with an unknown class."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from barnabas.broker.config import BrokerConfig
from barnabas.broker.security.authorizer.acl_authorizer import AclAuthorizer
from barnabas.broker.server.server import BrokerServer
from barnabas.config_def import InvalidConfig
from barnabas.network.event_loop import run
from barnabas.security.acl import AclBindingFilter
from tests.unit.broker.security.authorizer.acls import acl, session


def config(data: Path, authorizer: str) -> BrokerConfig:
    return BrokerConfig.from_properties(
        {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(data), "authorizer.class.name": authorizer, "super.users": "User:admin"}
    )


def test_the_acls_of_an_earlier_life_are_obeyed_from_the_start(tmp_path: Path) -> None:
    async def life() -> None:
        for expected in ([], [acl("orders")]):
            server = BrokerServer(config(tmp_path, "kafka.security.authorizer.AclAuthorizer"))
            assert server.config.unknown == []
            await asyncio.wait_for(server.start(), 60)
            authorizer = server.broker.access.authorizer
            assert isinstance(authorizer, AclAuthorizer)
            assert list(authorizer.acls(AclBindingFilter())) == expected
            await authorizer.create_acls(session(), [acl("orders")])
            await server.shutdown()

    run(life())


def test_a_broker_with_an_unknown_authorizer_does_not_start(tmp_path: Path) -> None:
    async def life() -> None:
        server = BrokerServer(config(tmp_path, "com.example.Authorizer"))
        with pytest.raises(InvalidConfig, match=r"authorizer\.class\.name"):
            await server.start()

    run(life())
