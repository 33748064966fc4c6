"""The part of kafka-configs for clients: quotas of users, client ids and addresses, and SCRAM credentials.

Errors are those of Apache Kafka 4.2, raised before anything is sent.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from barnabas.errors import KafkaError
from barnabas.java_numbers import double_text, parse_double
from barnabas.metadata.znodes.ordering import java_hash_map
from barnabas.tools.command_line.failures import BadArgument, java_name, message_of

if TYPE_CHECKING:
    from barnabas.client.admin.admin import Admin

_USERS: Final = "users"
_CLIENTS: Final = "clients"
_ENTITY_TYPES: Final = {"users": "user", "clients": "client-id", "ips": "ip"}
_TITLES: Final = {"user": "user-principal", "client-id": "client-id", "ip": "ip"}
QUOTAS: Final = ("producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate")
IP_QUOTAS: Final = ("connection_creation_rate",)
SCRAM: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")
_ITERATIONS_DEFAULT: Final = 4096
_ITERATIONS_MIN: Final = 4096
_CREDENTIAL: Final = re.compile(r"(?:iterations=(-?[0-9]*),)?password=(.*)", re.DOTALL)


def alter_users_or_clients(
    admin: Admin, types: Sequence[str], names: Sequence[str], added: Mapping[str, str], deleted: Sequence[str]
) -> None:
    scram_added = {name: value for name, value in added.items() if name in SCRAM}
    scram_deleted = [name for name in deleted if name in SCRAM]
    unknown_added = [name for name in added if name not in SCRAM and name not in QUOTAS]
    unknown_deleted = [name for name in deleted if name not in SCRAM and name not in QUOTAS]
    if types[0] == _CLIENTS or len(types) == 2:
        if unknown_added or scram_added:
            raise BadArgument(_only("quota configs can be added", _CLIENTS, "Set", [*unknown_added, *scram_added]))
        if unknown_deleted or scram_deleted:
            raise BadArgument(_only("quota configs can be deleted", _CLIENTS, "ArrayBuffer", [*unknown_deleted, *scram_deleted]))
    else:
        if unknown_added:
            raise BadArgument(_only("quota and SCRAM credential configs can be added", _USERS, "Set", unknown_added))
        if unknown_deleted:
            raise BadArgument(_only("quota and SCRAM credential configs can be deleted", _USERS, "ArrayBuffer", unknown_deleted))
        if scram_added or scram_deleted:
            _check_scram(names, added, deleted)
    if any(name in QUOTAS for name in (*added, *deleted)):
        _alter_quotas(admin, types, names, added, deleted)
    else:
        _alter_scram(admin, names[0], scram_added, scram_deleted)


def alter_ips(admin: Admin, types: Sequence[str], names: Sequence[str], added: Mapping[str, str], deleted: Sequence[str]) -> None:
    unknown = [name for name in (*added, *deleted) if name not in IP_QUOTAS]
    if unknown:
        raise BadArgument(
            f"Only connection quota configs can be added for 'ips' using --bootstrap-server. Unexpected config names: {','.join(unknown)}"
        )
    _alter_quotas(admin, types, names, added, deleted)


def as_json(admin: Admin, types: Sequence[str], names: Sequence[str]) -> list[dict[str, Any]]:
    """The quotas, and the credentials of users; a null name is the default entity."""
    entities: list[dict[str, Any]] = [
        {"entity": dict(entity), "quotas": dict(values)} for entity, values in _quotas(admin, types, names).items()
    ]
    if has_credentials(types, names):
        for user, description in admin.describe_user_scram_credentials(list(names) or None).successes.items():
            credentials = {info.mechanism.mechanism_name: {"iterations": info.iterations} for info in description.credential_infos}
            entities.append({"entity": {"user": user}, "credentials": credentials})
    return entities


def has_credentials(types: Sequence[str], names: Sequence[str]) -> bool:
    return list(types) == [_USERS] and "" not in names


def describe(admin: Admin, types: Sequence[str], names: Sequence[str]) -> None:
    for entity, values in _quotas(admin, types, names).items():
        parts = []
        for kind in ("user", "client-id", "ip"):
            if kind in entity:
                name = entity[kind]
                parts.append(f"{_TITLES[kind]} '{name}'" if name is not None else f"the default {_TITLES[kind]}")
        configs = ", ".join(f"{name}={double_text(values[name])}" for name in java_hash_map(values))
        print(f"Quota configs for {', '.join(parts)} are {configs}")


def describe_scram(admin: Admin, names: Sequence[str]) -> None:
    """Users without a credential are left out, as by Kafka's client."""
    from barnabas.client.errors import ResourceNotFound

    outcomes = admin.describe_user_scram_credentials(list(names) or None)
    for user in outcomes:
        try:
            credentials = outcomes[user].credential_infos
        except ResourceNotFound:
            continue
        except KafkaError as error:
            simple = java_name(error).rpartition(".")[2]
            print(f"Error retrieving SCRAM credential configs for user-principal '{user}': {simple}: {message_of(error)}")
            continue
        configs = ", ".join(f"{info.mechanism.mechanism_name}=iterations={info.iterations}" for info in credentials)
        print(f"SCRAM credential configs for user-principal '{user}' are {configs}")


def _only(what: str, kind: str, collection: str, names: Sequence[str]) -> str:
    """Kafka prints the toString of Scala's collections."""
    return f"Only {what} for '{kind}' using --bootstrap-server. Unexpected config names: {collection}({', '.join(names)})"


def _check_scram(names: Sequence[str], added: Mapping[str, str], deleted: Sequence[str]) -> None:
    if "" in names:
        raise BadArgument(
            "The use of --entity-default or --user-defaults is not allowed with User SCRAM Credentials using --bootstrap-server."
        )
    if any(name in QUOTAS for name in (*added, *deleted)):
        raise BadArgument(f"Cannot alter both quota and SCRAM credential configs simultaneously for '{_USERS}' using --bootstrap-server.")


def _alter_quotas(admin: Admin, types: Sequence[str], names: Sequence[str], added: Mapping[str, str], deleted: Sequence[str]) -> None:
    from barnabas.client.admin.access.quotas import ClientQuotaAlteration, ClientQuotaEntity
    from barnabas.tools.administration.config_entities import Refused

    if len(types) != len(names):
        raise BadArgument("Exactly one entity name must be specified for every entity type")
    old: Mapping[str, float] = next(iter(_quotas(admin, types, names).values()), {})
    wrong = [name for name in deleted if name not in old]
    if wrong:
        raise Refused(f"Invalid config(s): {','.join(wrong)}")
    operations: dict[str, float | None] = {}
    for name, text in added.items():
        value = parse_double(text)
        if value is None:
            raise BadArgument(f"Cannot parse quota configuration value for {name}: {text}")
        operations[name] = value
    operations |= dict.fromkeys(deleted)
    entity = ClientQuotaEntity({_ENTITY_TYPES[kind]: name or None for kind, name in zip(types, names, strict=True)})
    admin.alter_client_quotas([ClientQuotaAlteration(entity, operations)]).all()


def _quotas(admin: Admin, types: Sequence[str], names: Sequence[str]) -> Mapping[Any, Mapping[str, float]]:
    from barnabas.client.admin.access.quotas import ClientQuotaFilter, ClientQuotaFilterComponent

    if len(names) > len(types):
        raise BadArgument("More entity names specified than entity types")
    components = []
    for index, kind in enumerate(types):
        entity_type = _ENTITY_TYPES[kind]
        if index >= len(names):
            components.append(ClientQuotaFilterComponent.of_entity_type(entity_type))
        elif names[index]:
            components.append(ClientQuotaFilterComponent.of_entity(entity_type, names[index]))
        else:
            components.append(ClientQuotaFilterComponent.of_default_entity(entity_type))
    return admin.describe_client_quotas(ClientQuotaFilter.contains_only(components))


def _alter_scram(admin: Admin, user: str, added: Mapping[str, str], deleted: Sequence[str]) -> None:
    from barnabas.client.admin.access.scram import (
        ScramCredentialInfo,
        ScramMechanism,
        UserScramCredentialDeletion,
        UserScramCredentialUpsertion,
    )

    alterations: list[Any] = [UserScramCredentialDeletion(user, ScramMechanism.from_mechanism_name(name)) for name in deleted]
    for name, text in added.items():
        iterations, password = parse_credential(name, text)
        info = ScramCredentialInfo(ScramMechanism.from_mechanism_name(name), iterations)
        alterations.append(UserScramCredentialUpsertion(user, info, password.encode()))
    admin.alter_user_scram_credentials(alterations).all()


def parse_credential(mechanism: str, text: str) -> tuple[int, str]:
    match = _CREDENTIAL.fullmatch(text)
    if match is None:
        raise BadArgument(f"Invalid credential property {mechanism.replace('-', '_')}={text}")
    iterations = int(match[1]) if match[1] not in (None, "", "-1") else _ITERATIONS_DEFAULT
    if iterations < _ITERATIONS_MIN:
        raise BadArgument(f"Iterations {iterations} is less than the minimum {_ITERATIONS_MIN} required for {mechanism}")
    return iterations, match[2]
