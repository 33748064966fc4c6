"""The table of APIs, the error codes, and the generator that wrote the one and is held to its own output."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import barnabas.protocol
from barnabas import errors
from barnabas.protocol import api_keys
from barnabas.protocol.errors import ErrorCode, MalformedMessage, UnsupportedVersion
from barnabas.protocol.generator.__main__ import main as generate
from barnabas.protocol.generator.schema import OLD_RELEASE, RELEASE, Versions, parse, read_release, snake_case
from barnabas.protocol.registry import APIS, BY_NAME
from tests.error_codes import code_of
from tests.unit.protocol.instances import MESSAGES

PROTOCOL = Path(barnabas.protocol.__file__ or "").parent


def test_every_api_knows_its_messages() -> None:
    for api in APIS.values():
        assert (api.request.__name__, api.response.__name__) == (f"{api.name}Request", f"{api.name}Response")
        for kind in (api.request, api.response):
            assert (api.lowest_version, api.highest_version) == (kind.LOWEST_VERSION, kind.HIGHEST_VERSION)  # type: ignore[attr-defined]
        assert BY_NAME[api.name] is api


def test_the_versions_are_those_of_both_releases() -> None:
    for release in (RELEASE, OLD_RELEASE):
        for name, schema in read_release(release).items():
            if schema["type"] == "request" and schema["validVersions"] != "none":
                versions = Versions.parse(schema["validVersions"])
                assert all(BY_NAME[name.removesuffix("Request")].has_version(version) for version in versions)
    assert (APIS[api_keys.PRODUCE].lowest_version, APIS[api_keys.PRODUCE].highest_version) == (0, 13)
    assert (APIS[api_keys.LEADER_AND_ISR].lowest_version, APIS[api_keys.LEADER_AND_ISR].highest_version) == (0, 7)


def test_a_version_has_the_fields_of_its_release_in_their_order() -> None:
    new, old = read_release(RELEASE), read_release(OLD_RELEASE)
    for name, message in MESSAGES.items():
        for version in message.versions:
            kept = name in new and version in Versions.parse(new[name]["validVersions"])
            source = parse(new[name] if kept else old[name])
            for struct in source.structs.values():
                expected = [(one.name, version in one.nullable, version in one.tagged) for one in struct.fields if version in one.versions]
                joined = message.structs[struct.name].fields
                assert [(one.name, version in one.nullable, version in one.tagged) for one in joined if version in one.versions] == expected


def test_an_unstable_version_is_not_counted_as_stable() -> None:
    assert (APIS[api_keys.INIT_PRODUCER_ID].stable_version, APIS[api_keys.INIT_PRODUCER_ID].highest_version) == (5, 6)
    assert APIS[api_keys.FETCH].stable_version == APIS[api_keys.FETCH].highest_version


def test_importing_the_registry_imports_no_message() -> None:
    code = "import sys, barnabas.protocol.registry; print([m for m in sys.modules if m.startswith('barnabas.protocol.messages')])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONPATH": str(PROTOCOL.parents[1])}
    )
    assert done.stdout.strip() == "[]"


def test_what_is_checked_in_is_what_the_generator_writes(tmp_path: Path) -> None:
    generate(tmp_path)
    written = {path.relative_to(tmp_path): path.read_text() for path in tmp_path.rglob("*.py")}
    assert len(written) > 250
    assert written == {path: (PROTOCOL / path).read_text() for path in written}
    for folder in ("messages", "coordinator_records"):
        assert {path.name for path in (PROTOCOL / folder).glob("*.py")} == {path.name for path in written if path.parent.name == folder}


@pytest.mark.parametrize(
    ("name", "attribute"),
    [
        ("LeaderIdAndEpoch", "leader_id_and_epoch"),
        ("KRaftVersion", "kraft_version"),
        ("Enable2Pc", "enable_2pc"),
        ("ISRs", "is_rs"),
        ("From", "from_"),
    ],
)
def test_names_become_python_s(name: str, attribute: str) -> None:
    assert snake_case(name) == attribute


def test_every_exception_has_the_code_and_the_retriability_of_the_table() -> None:
    def subclasses(kind: type[errors.KafkaError]) -> list[type[errors.KafkaError]]:
        return [kind, *(descendant for child in kind.__subclasses__() for descendant in subclasses(child))]

    for kind in subclasses(errors.KafkaError):
        if kind.code == ErrorCode.UNKNOWN_SERVER_ERROR:
            continue  # it never goes over the wire: a client's own, which says itself whether to try again
        assert code_of(kind.code).retriable == kind.retriable, kind
    assert {MalformedMessage, UnsupportedVersion} <= set(subclasses(errors.KafkaError))


def test_the_table_has_all_codes_of_kafka_4_2_without_a_gap() -> None:
    assert [code.value for code in ErrorCode] == list(range(-1, 134))
    not_leader: int = ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert not_leader == 6
    assert ErrorCode.REQUEST_TIMED_OUT.retriable
    assert code_of(42).message.startswith("This most likely occurs because of a request being malformed")
    assert int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) + 0 == 3
