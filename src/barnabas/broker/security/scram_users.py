"""The SCRAM users of the metadata store: /config/users/NAME has a credential for each mechanism, beside the quotas of the user.

The broker keeps the credentials of all users in `Credentials`. ConfigManager reads the znodes at the start and after each notification,
and calls `user_changed`.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from barnabas.broker.security.credentials import Credentials
from barnabas.broker.security.scram_changes import ScramChange, ScramUpsertion, plan_changes
from barnabas.errors import IllegalArgument, KafkaError
from barnabas.metadata.admin_tree import USER, AdminTree
from barnabas.metadata.errors import TreeError
from barnabas.metadata.znodes.configs import DEFAULT_ENTITY, desanitize, sanitize
from barnabas.protocol.errors import ErrorCode
from barnabas.security.errors import DuplicateResource, ResourceNotFound
from barnabas.security.new_user import NewUser
from barnabas.security.scram import HASHES, ScramCredential

_log = logging.getLogger(__name__)

USERS_PER_SLICE: Final = 50  # users of a request that are read or written before other requests are served


@dataclass(frozen=True, slots=True)
class ScramUser:
    """The iterations of each mechanism that the user has a credential for; or the error."""

    name: str
    iterations: Mapping[str, int]
    error: KafkaError | None = None


class ScramUsers:
    """`apply_changes` processes the new notifications of configs, so that this broker uses a changed credential at once. `take_turn` lets
    other requests be served between the slices of a long one."""

    def __init__(
        self,
        admin_tree: AdminTree,
        credentials: Credentials,
        apply_changes: Callable[[], Awaitable[None]],
        take_turn: Callable[[str], Awaitable[None]],
    ) -> None:
        self._admin = admin_tree
        self._credentials = credentials
        self._apply_changes = apply_changes
        self._take_turn = take_turn

    def user_changed(self, name: str, properties: Mapping[str, str]) -> None:
        """A credential that cannot be read is dropped: nobody authenticates with it."""
        for mechanism in HASHES:
            self._credentials.set_user(mechanism, name, _credential(name, mechanism, properties))

    async def create(self, users: Sequence[NewUser]) -> None:
        """Called before the broker reads the users. An existing credential stays: a restart must not undo a changed password."""
        for user in users:
            change = ScramChange(user.name, user.mechanism, user.credential)
            existing = await self._admin.fetch_config(USER, sanitize(user.name))
            if user.mechanism in existing and not user.replaces:
                _log.info("User %s has a %s credential already: it is not changed", user.name, user.mechanism)
            else:
                await self._admin.update_config(USER, sanitize(user.name), change.applied)
                _log.info("Created the %s credential of user %s", user.mechanism, user.name)

    async def describe(self, names: Sequence[str]) -> list[ScramUser]:
        """The named users in the order of their first mention; without names all users that have credentials, sorted."""
        times = Counter(names)
        if names:
            configs = await self._admin.fetch_configs(USER, [sanitize(name) for name in times if name])
        else:
            configs = await self._admin.fetch_all_configs(USER)
            configs.pop(DEFAULT_ENTITY, None)
            times = Counter(sorted(desanitize(name) for name, properties in configs.items() if HASHES.keys() & properties.keys()))
        users = []
        for name, count in times.items():
            users.append(_described(name, count, configs.get(sanitize(name), {})))
            await self._maybe_take_turn(len(users))
        return users

    async def alter(self, deletions: Sequence[tuple[str, int]], upsertions: Sequence[ScramUpsertion]) -> dict[str, KafkaError | None]:
        """The error of each user. On return this broker uses the new credentials."""
        deleted = list(dict.fromkeys(sanitize(user) for user, _ in deletions if user))
        existing = await self._admin.fetch_configs(USER, deleted)
        plan = plan_changes(deletions, upsertions, lambda user, mechanism: mechanism in existing[sanitize(user)])
        outcomes: dict[str, KafkaError | None] = {}
        for number, (user, change) in enumerate(plan.items(), 1):
            outcomes[user] = change if isinstance(change, KafkaError) else await self._write(change)
            await self._maybe_take_turn(number)
        await self._apply_changes()
        return outcomes

    async def _write(self, change: ScramChange) -> KafkaError | None:
        try:
            await self._admin.update_config(USER, sanitize(change.user), change.applied)
        except KafkaError as error:
            return error
        except TreeError as error:
            _log.warning("The SCRAM credential of user %s cannot be written: %s", change.user, type(error).__name__)
            return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR.message)
        return None

    async def _maybe_take_turn(self, number: int) -> None:
        if number % USERS_PER_SLICE == 0:
            await self._take_turn("SCRAM users")


def _described(name: str, count: int, properties: Mapping[str, str]) -> ScramUser:
    if count > 1:
        text = f"Cannot describe SCRAM credentials for the same user twice in a single request: {name}"
        return ScramUser(name, {}, DuplicateResource(text))
    credentials = {mechanism: _credential(name, mechanism, properties) for mechanism in HASHES}
    iterations = {mechanism: credential.iterations for mechanism, credential in credentials.items() if credential is not None}
    if not iterations:
        return ScramUser(name, {}, ResourceNotFound(f"Attempt to describe a user credential that does not exist: {name}"))
    return ScramUser(name, iterations)


def _credential(name: str, mechanism: str, properties: Mapping[str, str]) -> ScramCredential | None:
    text = properties.get(mechanism)
    if text is None:
        return None
    try:
        return ScramCredential.parse(text)
    except IllegalArgument as error:
        _log.error("The %s credential of user %s is ignored: %s. Set its password again with kafka-configs.", mechanism, name, error)
        return None
