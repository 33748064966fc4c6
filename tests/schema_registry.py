"""A schema registry for tests: Confluent's REST API over a dict, on a thread of the test's process.

It keeps schemas as they are given and compares them as JSON (or text), so that normalizing does no more than to order the keys of JSON; a
Protobuf schema is a base64 descriptor here both ways. Compatibility is checked for Avro records only: BACKWARD refuses new fields without a
default, FORWARD the loss of such fields.
"""

from __future__ import annotations

import base64
import json
import re
import ssl
import threading
import uuid
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

LEVELS = ("NONE", "BACKWARD", "BACKWARD_TRANSITIVE", "FORWARD", "FORWARD_TRANSITIVE", "FULL", "FULL_TRANSITIVE")


class Refused(Exception):
    def __init__(self, status: int, code: int, message: str) -> None:
        super().__init__(message)
        self.status, self.code = status, code


@dataclass
class Entry:
    """A schema that has a number; `content` is what makes it the same as another."""

    id: int
    text: str
    type: str
    references: list[dict[str, Any]]
    content: str
    rules: dict[str, Any] = field(default_factory=dict)

    @property
    def guid(self) -> str:
        return str(uuid.uuid3(uuid.NAMESPACE_URL, self.content))

    def answer(self) -> dict[str, Any]:
        document: dict[str, Any] = {"schema": self.text, "guid": self.guid}
        if self.type != "AVRO":
            document["schemaType"] = self.type
        if self.references:
            document["references"] = self.references
        if self.rules:
            document["ruleSet"] = self.rules
        return document


@dataclass
class Version:
    number: int
    entry: Entry
    deleted: bool = False


@dataclass
class Registry:
    """`tells_all` answers a registration as registries do since 8.0; older ones gave the number only, and no GUIDs."""

    url: str = ""
    tells_all: bool = True
    credentials: str | None = None  # name:password that everybody must give
    failures: list[int] = field(default_factory=list)  # statuses to answer the next requests with
    requests: list[str] = field(default_factory=list)
    subjects: dict[str, list[Version]] = field(default_factory=dict)
    entries: list[Entry] = field(default_factory=list)
    level: str = "BACKWARD"
    levels: dict[str, str] = field(default_factory=dict)

    def answer(self, method: str, path: str, query: dict[str, str], body: Any) -> Any:
        for verb, pattern, handler in ROUTES:
            match = re.fullmatch(pattern, path)
            if verb == method and match:
                return handler(self, query, body, *(unquote(part) for part in match.groups()))
        raise Refused(404, 404, "HTTP 404 Not Found")

    def _entry(self, body: Any, normalize: bool) -> Entry:
        """The schema of a request, with its number if it has one already and -1 if not."""
        text, kind = body["schema"], body.get("schemaType") or "AVRO"
        references = body.get("references") or []
        for reference in references:
            self._version(reference["subject"], str(reference["version"]), with_deleted=True)
        try:
            if kind == "PROTOBUF":
                base64.b64decode(text, validate=True)
                plain = text
            else:
                plain = json.dumps(json.loads(text), sort_keys=normalize)
        except ValueError:
            raise Refused(422, 42201, f"Invalid schema {text}") from None
        content = json.dumps([kind, plain, references])
        found = next((entry for entry in self.entries if entry.content == content), None)
        return found or Entry(-1, plain if normalize else text, kind, references, content)

    def _versions(self, subject: str, with_deleted: bool = False) -> list[Version]:
        versions = [version for version in self.subjects.get(subject, []) if with_deleted or not version.deleted]
        if not versions:
            raise Refused(404, 40401, f"Subject '{subject}' not found.")
        return versions

    def _version(self, subject: str, number: str, with_deleted: bool = False) -> Version:
        versions = self._versions(subject, with_deleted)
        if number in ("latest", "-1"):
            return versions[-1]
        if not number.isdigit() or number == "0":
            raise Refused(422, 42202, f"The specified version '{number}' is not a valid version id.")
        for version in versions:
            if version.number == int(number):
                return version
        raise Refused(404, 40402, f"Version {number} not found.")

    def _full(self, subject: str, version: Version) -> dict[str, Any]:
        return {"subject": subject, "version": version.number, "id": version.entry.id, **version.entry.answer()}

    def list_subjects(self, query: dict[str, str], body: Any) -> Any:
        return [name for name, versions in self.subjects.items() if any(not version.deleted for version in versions)]

    def list_versions(self, query: dict[str, str], body: Any, subject: str) -> Any:
        return [version.number for version in self._versions(subject)]

    def register(self, query: dict[str, str], body: Any, subject: str) -> Any:
        entry = self._entry(body, query.get("normalize", "").lower() == "true")
        versions = self.subjects.setdefault(subject, [])
        same = next((version for version in versions if version.entry.content == entry.content and not version.deleted), None)
        if same is None:
            last = next((version for version in reversed(versions) if not version.deleted), None)
            if last is not None and not compatible(self.levels.get(subject, self.level), last.entry, entry):
                raise Refused(409, 409, "Schema being registered is incompatible with an earlier schema")
            if entry.id < 0:
                entry.id = len(self.entries) + 1
                self.entries.append(entry)
            same = Version(len(versions) + 1, entry)
            versions.append(same)
        return self._full(subject, same) if self.tells_all else {"id": same.entry.id}

    def lookup(self, query: dict[str, str], body: Any, subject: str) -> Any:
        entry = self._entry(body, query.get("normalize", "").lower() == "true")
        for version in self._versions(subject, query.get("deleted", "").lower() == "true"):
            if version.entry.content == entry.content:
                return self._full(subject, version)
        raise Refused(404, 40403, "Schema not found")

    def version(self, query: dict[str, str], body: Any, subject: str, number: str) -> Any:
        return self._full(subject, self._version(subject, number, query.get("deleted", "").lower() == "true"))

    def by_id(self, query: dict[str, str], body: Any, number: str) -> Any:
        if not 0 < int(number) <= len(self.entries):
            raise Refused(404, 40403, f"Schema {number} not found")
        return self.entries[int(number) - 1].answer()

    def by_guid(self, query: dict[str, str], body: Any, guid: str) -> Any:
        for entry in self.entries:
            if entry.guid == guid:
                return entry.answer()
        raise Refused(404, 40403, f"Schema {guid} not found")

    def delete_subject(self, query: dict[str, str], body: Any, subject: str) -> Any:
        permanent = query.get("permanent", "").lower() == "true"
        versions = self._versions(subject, with_deleted=permanent)
        if permanent:
            if any(not version.deleted for version in versions):
                raise Refused(404, 40405, f"Subject '{subject}' was not deleted first before being permanently deleted")
            del self.subjects[subject]
        for version in versions:
            version.deleted = True
        return [version.number for version in versions]

    def delete_version(self, query: dict[str, str], body: Any, subject: str, number: str) -> Any:
        permanent = query.get("permanent", "").lower() == "true"
        found = self._version(subject, number, with_deleted=permanent)
        if permanent:
            if not found.deleted:
                raise Refused(404, 40407, f"Subject '{subject}' Version {number} was not deleted first before being permanently deleted")
            self.subjects[subject].remove(found)
        found.deleted = True
        return found.number

    def get_level(self, query: dict[str, str], body: Any, subject: str | None = None) -> Any:
        if subject is not None and subject not in self.levels and query.get("defaultToGlobal") != "true":
            raise Refused(404, 40408, f"Subject '{subject}' does not have subject-level compatibility configured")
        return {"compatibilityLevel": self.level if subject is None else self.levels.get(subject, self.level)}

    def put_level(self, query: dict[str, str], body: Any, subject: str | None = None) -> Any:
        if body.get("compatibility") not in LEVELS:
            raise Refused(422, 42203, f"Invalid compatibility level. Valid values are {', '.join(LEVELS)}")
        if subject is None:
            self.level = body["compatibility"]
        else:
            self.levels[subject] = body["compatibility"]
        return body

    def check(self, query: dict[str, str], body: Any, subject: str, number: str) -> Any:
        last = self._version(subject, number).entry
        return {"is_compatible": compatible(self.levels.get(subject, self.level), last, self._entry(body, False))}


ROUTES: list[tuple[str, str, Any]] = [
    ("GET", r"/subjects", Registry.list_subjects),
    ("GET", r"/subjects/([^/]+)/versions", Registry.list_versions),
    ("POST", r"/subjects/([^/]+)/versions", Registry.register),
    ("POST", r"/subjects/([^/]+)", Registry.lookup),
    ("GET", r"/subjects/([^/]+)/versions/([^/]+)", Registry.version),
    ("DELETE", r"/subjects/([^/]+)", Registry.delete_subject),
    ("DELETE", r"/subjects/([^/]+)/versions/([^/]+)", Registry.delete_version),
    ("GET", r"/schemas/ids/(\d+)", Registry.by_id),
    ("GET", r"/schemas/guids/([^/]+)", Registry.by_guid),
    ("GET", r"/config", Registry.get_level),
    ("GET", r"/config/([^/]+)", Registry.get_level),
    ("PUT", r"/config", Registry.put_level),
    ("PUT", r"/config/([^/]+)", Registry.put_level),
    ("POST", r"/compatibility/subjects/([^/]+)/versions/([^/]+)", Registry.check),
]


def compatible(level: str, old: Entry, new: Entry) -> bool:
    if old.type != new.type:
        return level == "NONE"
    if old.type != "AVRO":
        return True
    before, after = _fields(old.text), _fields(new.text)
    backward = all(name in before or has_default for name, has_default in after.items())
    forward = all(name in after or has_default for name, has_default in before.items())
    kind = level.removesuffix("_TRANSITIVE")
    return {"NONE": True, "BACKWARD": backward, "FORWARD": forward, "FULL": backward and forward}[kind]


def _fields(text: str) -> dict[str, bool]:
    schema = json.loads(text)
    return {field["name"]: "default" in field for field in schema.get("fields", [])} if isinstance(schema, dict) else {}


@contextmanager
def running(*, port: int = 0, tls: ssl.SSLContext | None = None, **settings: Any) -> Generator[Registry, None, None]:
    """A registry on a port, 0 for any that is free, for as long as the block lasts."""
    registry = Registry(**settings)
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def do(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            url = urlsplit(self.path)
            with lock:
                registry.requests.append(f"{self.command} {self.path}")
                status, answer = self.answer(url.path, {name: values[-1] for name, values in parse_qs(url.query).items()}, body)
            told = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
            self.send_header("Content-Length", str(len(told)))
            self.end_headers()
            self.wfile.write(told)

        do_GET = do_POST = do_PUT = do_DELETE = do

        def answer(self, path: str, query: dict[str, str], body: Any) -> tuple[int, Any]:
            if registry.failures:
                return registry.failures.pop(0), {"error_code": 50001, "message": "Error in the backend data store"}
            credentials = registry.credentials
            if credentials is not None and self.headers.get("Authorization") != "Basic " + base64.b64encode(credentials.encode()).decode():
                return 401, {"error_code": 401, "message": "Unauthorized"}
            try:
                return 200, registry.answer(self.command, path, query, body)
            except Refused as refused:
                return refused.status, {"error_code": refused.code, "message": str(refused)}

        def log_message(self, format: str, *args: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    registry.url = f"{'http' if tls is None else 'https'}://localhost:{server.server_address[1]}"
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield registry
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
