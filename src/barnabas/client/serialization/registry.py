"""A client of a schema registry that speaks Confluent's REST API: schemas are registered under subjects and known by number.

A number means one schema forever, so that is asked once; what is latest may change, and is asked again after `latest.cache.ttl.sec`.
Safe to share between threads and serializers; what is remembered is bounded.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar
from urllib.parse import quote

from barnabas.client.serialization.registry_http import RestClient, SchemaRegistryError, rest_settings

AVRO: Final = "AVRO"
JSON: Final = "JSON"
PROTOBUF: Final = "PROTOBUF"
CACHE_ENTRIES: Final = 1000

V = TypeVar("V")

__all__ = ["AVRO", "JSON", "PROTOBUF", "RegisteredSchema", "Schema", "SchemaReference", "SchemaRegistryClient", "SchemaRegistryError"]


@dataclass(frozen=True)
class SchemaReference:
    """`name` is how the referring schema writes it: a full name in Avro, a URI in JSON Schema, the import's path in Protobuf."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True)
class Schema:
    text: str
    type: str = AVRO
    references: tuple[SchemaReference, ...] = ()

    def __hash__(self) -> int:
        """Of the text alone, which remembers its own: schemas are looked up for every record."""
        return hash(self.text)

    def as_request(self) -> dict[str, Any]:
        request: dict[str, Any] = {"schema": self.text}
        if self.type != AVRO:
            request["schemaType"] = self.type
        if self.references:
            request["references"] = [{"name": each.name, "subject": each.subject, "version": each.version} for each in self.references]
        return request


@dataclass(frozen=True)
class RegisteredSchema:
    """`guid` is "" and `version` -1 where the registry did not tell them. `has_rules`: data is to be changed or checked by rules, too."""

    id: int
    schema: Schema
    subject: str = ""
    version: int = -1
    guid: str = ""
    has_rules: bool = False


class SchemaRegistryClient:
    """`SchemaRegistryClient({"schema.registry.url": "http://localhost:8081"})`, or with a RestClient of one's own."""

    def __init__(
        self, configs: Mapping[str, Any] | None = None, *, rest: RestClient | None = None, now: Callable[[], float] = time.monotonic
    ) -> None:
        configs = configs or {}
        self._rest = rest or RestClient(rest_settings(configs))
        self._now = now
        ttl_s = float(configs.get("latest.cache.ttl.sec", -1))
        self._latest_ttl_s = ttl_s if ttl_s >= 0 else float("inf")
        self._cached = _Cache(CACHE_ENTRIES)
        self._latest = _Cache(CACHE_ENTRIES)

    def register(self, subject: str, schema: Schema, normalize: bool = False) -> RegisteredSchema:
        """Registers a schema, which does nothing if it is there already; refused where it is not compatible with the subject's others."""

        def ask() -> RegisteredSchema:
            query = {"normalize": "true"} if normalize else None
            answer = self._rest.request("POST", f"subjects/{_in_path(subject)}/versions", schema.as_request(), query)
            self._latest.forget(subject)
            return _registered(answer, subject, schema)

        return self._cached.get(("register", subject, schema, normalize), ask)

    def lookup(self, subject: str, schema: Schema, normalize: bool = False) -> RegisteredSchema:
        """What a schema is registered as. Raises SchemaRegistryError 40403 if it is not."""

        def ask() -> RegisteredSchema:
            query = {"normalize": "true"} if normalize else None
            return _registered(self._rest.request("POST", f"subjects/{_in_path(subject)}", schema.as_request(), query), subject, schema)

        return self._cached.get(("lookup", subject, schema, normalize), ask)

    def schema_by_id(self, schema_id: int, subject: str | None = None, form: str | None = None) -> RegisteredSchema:
        """`form="serialized"` asks for Protobuf's descriptors instead of its text."""

        def ask() -> RegisteredSchema:
            query = _given(subject=subject, format=form)
            return _registered({"id": schema_id, **self._rest.request("GET", f"schemas/ids/{schema_id}", query=query)})

        return self._cached.get(("id", schema_id, subject, form), ask)

    def schema_by_guid(self, guid: str, form: str | None = None) -> RegisteredSchema:
        def ask() -> RegisteredSchema:
            return _registered({"id": -1, "guid": guid, **self._rest.request("GET", f"schemas/guids/{guid}", query=_given(format=form))})

        return self._cached.get(("guid", guid, form), ask)

    def version(self, subject: str, version: int, form: str | None = None) -> RegisteredSchema:
        def ask() -> RegisteredSchema:
            # A schema that others refer to may have been deleted since, and must still be found.
            query = _given(deleted="true", format=form)
            return _registered(self._rest.request("GET", f"subjects/{_in_path(subject)}/versions/{version}", query=query), subject)

        return self._cached.get(("version", subject, version, form), ask)

    def latest(self, subject: str, form: str | None = None) -> RegisteredSchema:
        def ask() -> tuple[float, RegisteredSchema]:
            asked = self._rest.request("GET", f"subjects/{_in_path(subject)}/versions/latest", query=_given(format=form))
            return self._now() + self._latest_ttl_s, _registered(asked, subject)

        until, found = self._latest.get((subject, form), ask)
        if self._now() < until:
            return found
        self._latest.forget(subject)
        return self._latest.get((subject, form), ask)[1]

    def subjects(self) -> list[str]:
        return list(self._rest.request("GET", "subjects"))

    def versions(self, subject: str) -> list[int]:
        return list(self._rest.request("GET", f"subjects/{_in_path(subject)}/versions"))

    def delete_subject(self, subject: str, permanent: bool = False) -> list[int]:
        """The versions that were deleted. Deleted for good can only be what was deleted before."""
        deleted = list(self._rest.request("DELETE", f"subjects/{_in_path(subject)}"))
        if permanent:
            self._rest.request("DELETE", f"subjects/{_in_path(subject)}", query={"permanent": "true"})
        self._cached.clear()
        self._latest.clear()
        return deleted

    def delete_version(self, subject: str, version: int, permanent: bool = False) -> int:
        deleted = int(self._rest.request("DELETE", f"subjects/{_in_path(subject)}/versions/{version}"))
        if permanent:
            self._rest.request("DELETE", f"subjects/{_in_path(subject)}/versions/{version}", query={"permanent": "true"})
        self._cached.clear()
        self._latest.clear()
        return deleted

    def compatibility(self, subject: str | None = None) -> str:
        """The level of a subject, or of all that have none of their own."""
        path = "config" if subject is None else f"config/{_in_path(subject)}"
        query = None if subject is None else {"defaultToGlobal": "true"}
        return str(self._rest.request("GET", path, query=query)["compatibilityLevel"])

    def set_compatibility(self, level: str, subject: str | None = None) -> str:
        path = "config" if subject is None else f"config/{_in_path(subject)}"
        return str(self._rest.request("PUT", path, {"compatibility": level.upper()})["compatibility"])

    def is_compatible(self, subject: str, schema: Schema, version: int | str = "latest") -> bool:
        path = f"compatibility/subjects/{_in_path(subject)}/versions/{version}"
        return bool(self._rest.request("POST", path, schema.as_request())["is_compatible"])

    def referenced_schemas(self, schema: Schema, form: str | None = None) -> list[tuple[str, Schema]]:
        """All that a schema refers to, directly or not, each once and before those that refer to it, with the names they are known by."""
        found: list[tuple[str, Schema]] = []
        self._follow(schema.references, form, found, set(), ())
        return found

    def _follow(
        self,
        references: Sequence[SchemaReference],
        form: str | None,
        found: list[tuple[str, Schema]],
        seen: set[SchemaReference],
        above: tuple[SchemaReference, ...],
    ) -> None:
        for reference in references:
            if reference in above:
                raise SchemaRegistryError(f"The schema {reference.subject} version {reference.version} refers to itself")
            if reference in seen:
                continue
            seen.add(reference)
            referred = self.version(reference.subject, reference.version, form).schema
            self._follow(referred.references, form, found, seen, (*above, reference))
            found.append((reference.name, referred))


def _in_path(subject: str) -> str:
    return quote(subject, safe="")


def _given(**query: str | None) -> dict[str, str]:
    return {name: value for name, value in query.items() if value is not None}


def _registered(answer: Mapping[str, Any], subject: str = "", schema: Schema | None = None) -> RegisteredSchema:
    """An answer, completed with what was asked: registering gives no more than the number, in older registries."""
    try:
        text = answer.get("schema")
        if text is not None:
            references = tuple(SchemaReference(each["name"], each["subject"], each["version"]) for each in answer.get("references") or ())
            schema = Schema(text, answer.get("schemaType") or AVRO, references)
        if schema is None:
            raise KeyError("schema")
        return RegisteredSchema(
            int(answer["id"]),
            schema,
            answer.get("subject") or subject,
            int(answer.get("version") or -1),
            answer.get("guid") or "",
            any((answer.get("ruleSet") or {}).values()),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise SchemaRegistryError(f"The schema registry's answer has no {error}: {str(answer)[:200]}") from error


class _Cache:
    """The answers used last, by what was asked. Two threads that ask at once ask once; who finds an answer waits for nobody's question."""

    def __init__(self, entries_max: int) -> None:
        self._entries: OrderedDict[Hashable, Any] = OrderedDict()
        self._entries_max = entries_max
        self._lock = threading.Lock()
        self._asking = threading.Lock()

    def get(self, key: Hashable, ask: Callable[[], V]) -> V:
        found: V | None = self._find(key)
        if found is not None:
            return found
        with self._asking:
            found = self._find(key)
            if found is not None:
                return found
            answer = ask()
            with self._lock:
                self._entries[key] = answer
                if len(self._entries) > self._entries_max:
                    self._entries.popitem(last=False)
            return answer

    def _find(self, key: Hashable) -> Any:
        with self._lock:
            found = self._entries.get(key)
            if found is not None:
                self._entries.move_to_end(key)
            return found

    def forget(self, subject: str) -> None:
        with self._lock:
            for key in [each for each in self._entries if isinstance(each, tuple) and each[0] == subject]:
                del self._entries[key]

    def clear(self) -> None:
        with self._lock:
            self._entries.clear()
