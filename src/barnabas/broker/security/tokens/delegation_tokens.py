"""The delegation tokens of the metadata store: /delegation_token/tokens/ID, as Kafka 3.9 keeps them.

A znode has everything but the HMAC, which is the password of the token: it follows from the token id and delegation.token.secret.key,
which all brokers share. Any broker creates, renews and expires tokens; a notification in /delegation_token/token_changes makes the others
read the znode. The active controller removes expired tokens.
"""

from __future__ import annotations

import asyncio
import base64
import hmac
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Final

from barnabas.broker.clock import Clock
from barnabas.broker.security.credentials import Credentials
from barnabas.broker.security.session import Session
from barnabas.broker.security.tokens.token_rules import TokenRules, has_expired
from barnabas.endpoint import SecurityProtocol
from barnabas.metadata import paths
from barnabas.metadata.change_listener import ChangeListener
from barnabas.metadata.client import TreeClient
from barnabas.metadata.errors import BadVersion, NoNode, TreeError
from barnabas.metadata.tree import CreateMode
from barnabas.metadata.znodes.security import TokenZnode, decode_token, decode_token_change, encode_token, encode_token_change
from barnabas.security.errors import DelegationTokenDisabled, DelegationTokenNotFound, InvalidPrincipalType
from barnabas.security.principal import ANONYMOUS, KafkaPrincipal
from barnabas.uuid import Uuid

LOADED_PER_SLICE: Final = 100

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DelegationToken:
    """`hmac` is the secret of the token."""

    information: TokenZnode
    hmac: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class TokenConfig:
    """The settings delegation.token.*. Without a secret key there are no tokens."""

    secret_key: str | None = field(repr=False)
    rules: TokenRules
    check_interval_ms: int


class DelegationTokens:
    """`protocols` are the security protocols of the listeners, by name."""

    def __init__(
        self,
        config: TokenConfig,
        protocols: Mapping[str, SecurityProtocol],
        tree: TreeClient,
        credentials: Credentials,
        clock: Clock,
        random: Random,
    ) -> None:
        self._secret_key = (config.secret_key or "").encode()
        self._rules = config.rules
        self._check_interval_ms = config.check_interval_ms
        self._protocols = protocols
        self._tree = tree
        self._credentials = credentials
        self._clock = clock
        self._random = random
        self._tokens: dict[str, DelegationToken] = {}  # by token id
        self._ids: dict[bytes, str] = {}  # token ids by HMAC
        self._changes = ChangeListener(
            tree, paths.DELEGATION_TOKEN_CHANGES, paths.DELEGATION_TOKEN_CHANGE_PREFIX, self._token_changed, clock.monotonic_ms
        )
        self._checks: asyncio.Task[None] | None = None

    @property
    def is_enabled(self) -> bool:
        return bool(self._secret_key)

    async def start(self, is_controller: Callable[[], bool]) -> None:
        """Reads all tokens, before the broker serves its first connection."""
        if not self.is_enabled:
            return
        await self._tree.ensure(paths.DELEGATION_TOKENS)
        await self._changes.start()
        children = await self._tree.children(paths.DELEGATION_TOKENS)
        for number, token_id in enumerate(children.names if children is not None else [], 1):
            await self._load(token_id)
            if number % LOADED_PER_SLICE == 0:
                await asyncio.sleep(0)
        self._checks = asyncio.ensure_future(self._check_expiry(is_controller))

    async def close(self) -> None:
        if self._checks is not None:
            self._checks.cancel()
            await asyncio.gather(self._checks, return_exceptions=True)
        await self._changes.close()

    def allows_requests(self, session: Session, listener_name: str) -> bool:
        """Whether the client has proved its identity in another way than by a token: an anonymous client must not get a secret, and a token
        must not prolong itself."""
        protocol = self._protocols.get(listener_name)
        if session.is_token or protocol in (None, SecurityProtocol.PLAINTEXT):
            return False
        return protocol is not SecurityProtocol.SSL or session.principal != ANONYMOUS

    def check_enabled(self) -> None:
        if not self.is_enabled:
            raise DelegationTokenDisabled

    def tokens(self) -> list[DelegationToken]:
        """All tokens, the oldest first."""
        return sorted(self._tokens.values(), key=lambda token: (token.information.issue_timestamp, token.information.token_id))

    async def create(
        self, owner: KafkaPrincipal, requester: KafkaPrincipal, renewers: Sequence[KafkaPrincipal], max_lifetime_ms: int
    ) -> DelegationToken:
        """Raises KafkaError."""
        self.check_enabled()
        if not owner.principal_type:  # such a token could be written, and not be read again
            raise InvalidPrincipalType
        token_id = str(Uuid.random(self._random))
        information = self._rules.created(token_id, owner, requester, renewers, max_lifetime_ms, self._clock.now_ms())
        await self._tree.create_recursive(paths.delegation_token(token_id), encode_token(information))
        token = self._keep(information)
        await self._notify(token_id)
        _log.info("Created delegation token %s for owner %s", token_id, owner)
        return token

    async def renew(self, principal: KafkaPrincipal, token_hmac: bytes, period_ms: int) -> int:
        """The new expiry timestamp. Raises KafkaError."""
        return await self._change(token_hmac, lambda token, now_ms: self._rules.renewed(token, principal, period_ms, now_ms))

    async def expire(self, principal: KafkaPrincipal, token_hmac: bytes, period_ms: int) -> int:
        """The new expiry timestamp. Raises KafkaError."""
        return await self._change(token_hmac, lambda token, now_ms: self._rules.expired(token, principal, period_ms, now_ms))

    async def remove_expired(self) -> None:
        now_ms = self._clock.now_ms()
        for token in self.tokens():
            if has_expired(token.information, now_ms):
                _log.info("Delegation token %s of owner %s has expired", token.information.token_id, token.information.owner)
                await self._remove(token.information.token_id)

    async def _change(self, token_hmac: bytes, change: Callable[[TokenZnode, int], TokenZnode | None]) -> int:
        """Writes what `change` makes of the token; None removes it. The write is conditional on what was read, so that a token that another
        broker has just removed does not come back."""
        self.check_enabled()
        token_id = await self._id_of(token_hmac)
        while True:
            node = await self._tree.get(paths.delegation_token(token_id))
            if node is None:
                self._forget(token_id)
                raise DelegationTokenNotFound
            now_ms = self._clock.now_ms()
            changed = change(decode_token(paths.delegation_token(token_id), node.data), now_ms)
            if changed is None:
                await self._remove(token_id)
                return now_ms
            try:
                await self._tree.set_data(paths.delegation_token(token_id), encode_token(changed), node.stat.version)
            except (BadVersion, NoNode):
                continue
            self._keep(changed)
            await self._notify(token_id)
            return changed.expiry_timestamp

    async def _id_of(self, token_hmac: bytes) -> str:
        """Of a token that another broker has just created, too."""
        if token_hmac not in self._ids:
            await self._changes.process()
        token_id = self._ids.get(token_hmac)
        if token_id is None:
            raise DelegationTokenNotFound
        return token_id

    async def _remove(self, token_id: str) -> None:
        await self._tree.delete(paths.delegation_token(token_id))
        self._forget(token_id)
        await self._notify(token_id)

    async def _notify(self, token_id: str) -> None:
        path = f"{paths.DELEGATION_TOKEN_CHANGES}/{paths.DELEGATION_TOKEN_CHANGE_PREFIX}"
        await self._tree.create(path, encode_token_change(token_id), CreateMode.PERSISTENT_SEQUENTIAL)

    async def _token_changed(self, path: str, data: bytes) -> None:
        await self._load(decode_token_change(path, data))

    async def _load(self, token_id: str) -> None:
        """A token that cannot be read is forgotten: nobody authenticates with it."""
        path = paths.delegation_token(token_id)
        node = await self._tree.get(path)
        try:
            if node is not None:
                self._keep(decode_token(path, node.data))
                return
        except ValueError as error:  # CorruptZNode, or a principal that is not TYPE:NAME
            _log.error("The delegation token in %s is ignored: %s", path, error)
        self._forget(token_id)

    def _keep(self, information: TokenZnode) -> DelegationToken:
        owner = KafkaPrincipal.parse(information.owner)
        secret = hmac.digest(self._secret_key, information.token_id.encode(), "sha512")
        token = DelegationToken(information, secret)
        self._tokens[information.token_id] = token
        self._ids[secret] = information.token_id
        password = base64.b64encode(secret).decode()
        self._credentials.set_token_password(information.token_id, password, owner, information.expiry_timestamp)
        return token

    def _forget(self, token_id: str) -> None:
        token = self._tokens.pop(token_id, None)
        if token is not None:
            self._ids.pop(token.hmac, None)
        self._credentials.remove_token(token_id)

    async def _check_expiry(self, is_controller: Callable[[], bool]) -> None:
        while True:
            await asyncio.sleep(self._check_interval_ms / 1000)
            if not is_controller():
                continue
            try:
                await self.remove_expired()
            except TreeError as error:
                _log.warning("Expired delegation tokens are removed at the next check: %s", error)
