"""A client for a schema registry with Confluent's REST API: schemas are registered under subjects and identified by an id.

An id denotes one schema forever, so it is requested once. The latest version may change, and is requested again after
`latest.cache.ttl.sec`. The client is thread-safe and may be shared between serializers; its caches are bounded.
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
    """`name` is the name in the referring schema: a full name in Avro, a URI in JSON Schema, the path of the import in Protobuf."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True)
class Schema:
    text: str
    type: str = AVRO
    references: tuple[SchemaReference, ...] = ()

    def __hash__(self) -> int:
        """The hash of the text alone, which str caches: schemas are looked up for every record."""
        return hash(self.text)

    def as_request(self) -> dict[str, Any]:
        request: dict[str, Any] = {"schema": self.text}
        if self.type != AVRO:
            request["schemaType"] = self.type
        if self.references:
            request["references"] = [
                {"name": reference.name, "subject": reference.subject, "version": reference.version} for reference in self.references
            ]
        return request


@dataclass(frozen=True)
class RegisteredSchema:
    """`guid` is "" and `version` -1 if the registry did not return them. `has_rules`: rules also transform or validate the data."""

    id: int
    schema: Schema
    subject: str = ""
    version: int = -1
    guid: str = ""
    has_rules: bool = False


class SchemaRegistryClient:
    """`SchemaRegistryClient({"schema.registry.url": "http://localhost:8081"})`, or with a RestClient of the caller."""

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
        """Registers a schema. No effect if it is already registered; an error if it is incompatible with the subject's other schemas."""

        def ask() -> RegisteredSchema:
            query = {"normalize": "true"} if normalize else None
            answer = self._rest.request("POST", f"subjects/{_quoted(subject)}/versions", schema.as_request(), query)
            self._latest.forget(subject)
            return _registered(answer, subject, schema)

        return self._cached.get(("register", subject, schema, normalize), ask)

    def lookup(self, subject: str, schema: Schema, normalize: bool = False) -> RegisteredSchema:
        """The registration of a schema. Raises SchemaRegistryError 40403 if it is not registered."""

        def ask() -> RegisteredSchema:
            query = {"normalize": "true"} if normalize else None
            return _registered(self._rest.request("POST", f"subjects/{_quoted(subject)}", schema.as_request(), query), subject, schema)

        return self._cached.get(("lookup", subject, schema, normalize), ask)

    def schema_by_id(self, schema_id: int, subject: str | None = None, form: str | None = None) -> RegisteredSchema:
        """The schema of an id. `form="serialized"` requests Protobuf's descriptors instead of its text."""

        def ask() -> RegisteredSchema:
            query = _query(subject=subject, format=form)
            return _registered({"id": schema_id, **self._rest.request("GET", f"schemas/ids/{schema_id}", query=query)})

        return self._cached.get(("id", schema_id, subject, form), ask)

    def schema_by_guid(self, guid: str, form: str | None = None) -> RegisteredSchema:
        def ask() -> RegisteredSchema:
            return _registered({"id": -1, "guid": guid, **self._rest.request("GET", f"schemas/guids/{guid}", query=_query(format=form))})

        return self._cached.get(("guid", guid, form), ask)

    def version(self, subject: str, version: int, form: str | None = None) -> RegisteredSchema:
        def ask() -> RegisteredSchema:
            # A referenced schema may have been deleted since, and must still be found.
            query = _query(deleted="true", format=form)
            return _registered(self._rest.request("GET", f"subjects/{_quoted(subject)}/versions/{version}", query=query), subject)

        return self._cached.get(("version", subject, version, form), ask)

    def latest(self, subject: str, form: str | None = None) -> RegisteredSchema:
        def ask() -> tuple[float, RegisteredSchema]:
            response = self._rest.request("GET", f"subjects/{_quoted(subject)}/versions/latest", query=_query(format=form))
            return self._now() + self._latest_ttl_s, _registered(response, subject)

        until, registered = self._latest.get((subject, form), ask)
        if self._now() < until:
            return registered
        self._latest.forget(subject)
        return self._latest.get((subject, form), ask)[1]

    def subjects(self) -> list[str]:
        return list(self._rest.request("GET", "subjects"))

    def versions(self, subject: str) -> list[int]:
        return list(self._rest.request("GET", f"subjects/{_quoted(subject)}/versions"))

    def delete_subject(self, subject: str, permanent: bool = False) -> list[int]:
        """The versions that were deleted. A permanent deletion is only possible after a soft deletion."""
        deleted = list(self._rest.request("DELETE", f"subjects/{_quoted(subject)}"))
        if permanent:
            self._rest.request("DELETE", f"subjects/{_quoted(subject)}", query={"permanent": "true"})
        self._cached.clear()
        self._latest.clear()
        return deleted

    def delete_version(self, subject: str, version: int, permanent: bool = False) -> int:
        deleted = int(self._rest.request("DELETE", f"subjects/{_quoted(subject)}/versions/{version}"))
        if permanent:
            self._rest.request("DELETE", f"subjects/{_quoted(subject)}/versions/{version}", query={"permanent": "true"})
        self._cached.clear()
        self._latest.clear()
        return deleted

    def compatibility(self, subject: str | None = None) -> str:
        """The compatibility level of a subject, or the global level."""
        path = "config" if subject is None else f"config/{_quoted(subject)}"
        query = None if subject is None else {"defaultToGlobal": "true"}
        return str(self._rest.request("GET", path, query=query)["compatibilityLevel"])

    def set_compatibility(self, level: str, subject: str | None = None) -> str:
        path = "config" if subject is None else f"config/{_quoted(subject)}"
        return str(self._rest.request("PUT", path, {"compatibility": level.upper()})["compatibility"])

    def is_compatible(self, subject: str, schema: Schema, version: int | str = "latest") -> bool:
        path = f"compatibility/subjects/{_quoted(subject)}/versions/{version}"
        return bool(self._rest.request("POST", path, schema.as_request())["is_compatible"])

    def referenced_schemas(self, schema: Schema, form: str | None = None) -> list[tuple[str, Schema]]:
        """All schemas that a schema refers to, directly or indirectly, each once and before those that refer to it, with their names."""
        schemas: list[tuple[str, Schema]] = []
        self._follow(schema.references, form, schemas, set(), ())
        return schemas

    def _follow(
        self,
        references: Sequence[SchemaReference],
        form: str | None,
        schemas: list[tuple[str, Schema]],
        visited: set[SchemaReference],
        above: tuple[SchemaReference, ...],
    ) -> None:
        for reference in references:
            if reference in above:
                raise SchemaRegistryError(f"The schema {reference.subject} version {reference.version} refers to itself")
            if reference in visited:
                continue
            visited.add(reference)
            referred = self.version(reference.subject, reference.version, form).schema
            self._follow(referred.references, form, schemas, visited, (*above, reference))
            schemas.append((reference.name, referred))


def _quoted(subject: str) -> str:
    return quote(subject, safe="")


def _query(**query: str | None) -> dict[str, str]:
    return {name: value for name, value in query.items() if value is not None}


def _registered(answer: Mapping[str, Any], subject: str = "", schema: Schema | None = None) -> RegisteredSchema:
    """A registration from a response, completed with the request: older registries return only the id when registering."""
    try:
        text = answer.get("schema")
        if text is not None:
            references = tuple(
                SchemaReference(reference["name"], reference["subject"], reference["version"])
                for reference in answer.get("references") or ()
            )
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
    """The most recently used responses, by request. Concurrent requests for the same key are sent once; a cached response never waits
    for a request."""

    def __init__(self, entries_max: int) -> None:
        self._entries: OrderedDict[Hashable, Any] = OrderedDict()
        self._entries_max = entries_max
        self._lock = threading.Lock()
        self._asking = threading.Lock()

    def get(self, key: Hashable, ask: Callable[[], V]) -> V:
        cached: V | None = self._find(key)
        if cached is not None:
            return cached
        with self._asking:
            cached = self._find(key)
            if cached is not None:
                return cached
            answer = ask()
            with self._lock:
                self._entries[key] = answer
                if len(self._entries) > self._entries_max:
                    self._entries.popitem(last=False)
            return answer

    def _find(self, key: Hashable) -> Any:
        with self._lock:
            cached = self._entries.get(key)
            if cached is not None:
                self._entries.move_to_end(key)
            return cached

    def forget(self, subject: str) -> None:
        with self._lock:
            for key in [cached_key for cached_key in self._entries if isinstance(cached_key, tuple) and cached_key[0] == subject]:
                del self._entries[key]

    def clear(self) -> None:
        with self._lock:
            self._entries.clear()
