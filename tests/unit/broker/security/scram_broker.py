"""The part of a broker that has SCRAM users: a metadata store, the configs, the credentials, and the two handlers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

from barnabas.broker.security.access import Access
from barnabas.broker.security.authorizer.authorizer import Authorizer
from barnabas.broker.security.credentials import Credentials
from barnabas.broker.security.scram_users import ScramUsers
from barnabas.broker.security.session import Session
from barnabas.metadata.znodes.configs import encode_config
from barnabas.protocol.message import Message, parse, serialize
from barnabas.security.operations import AclOperation
from barnabas.security.principal import KafkaPrincipal
from tests.unit.broker.config_broker import ConfigBroker
from tests.unit.broker.handlers.asking import request_of

M = TypeVar("M", bound=Message)


class Allowing(Authorizer):
    """An authorizer that allows the named operations and no others."""

    def __init__(self, *operations: AclOperation) -> None:
        self.operations = operations

    def authorize(self, session: Session, action: Any) -> bool:
        return action.operation in self.operations


class ScramBroker(ConfigBroker):
    """`stored` are the znodes in /config/users that have `config` before the broker starts."""

    def __init__(self, directory: Path, stored: Sequence[str] = (), config: Mapping[str, str] | None = None) -> None:
        super().__init__(directory, {"broker.id": "0", "log.dirs": str(directory)})
        self.credentials = Credentials()
        self.turns: list[object] = []
        self.controller = SimpleNamespace(is_active=True)
        self.authorizer: Any = None
        self._stored, self._config = stored, encode_config(config or {})

    async def start_manager(self) -> None:
        for name in self._stored:
            await self.client.create_recursive(f"/config/users/{name}", self._config)
        self.make_manager()
        self.users = ScramUsers(self.admin, self.credentials, self.manager.process_changes, self._take_turn)
        self.manager.on_user_change.append(self.users.user_changed)
        await self.manager.start()

    async def _take_turn(self, taker: object) -> None:
        self.turns.append(taker)

    def exchange(self, handler: Any, message: Message, response: type[M]) -> M:
        broker: Any = SimpleNamespace(scram_users=self.users, controller=self.controller, access=Access(self.authorizer))
        request = request_of(message, 0)
        request.connection.session = Session(KafkaPrincipal("User", "admin"), "127.0.0.1")
        answer = self.run(handler.handle(broker, request).result())
        return parse(response, serialize(answer, 0), 0)
