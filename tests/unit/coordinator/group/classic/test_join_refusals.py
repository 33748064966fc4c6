"""What a JoinGroup that is refused looks like: the member hears its own id, and the name of no protocol as its version writes it."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.join_group_response import JoinGroupResponse
from tests.unit.coordinator.coordinator_host import Host, subscription

OTHER_PROTOCOL = {"another": subscription("t")}


def refused(group: str, version: int = 9, **options: Any) -> JoinGroupResponse:
    host = Host()
    host.stable()
    response = host.join("me", group=group, version=version, **options).one
    assert isinstance(response, JoinGroupResponse)
    return response


@pytest.mark.parametrize(
    ("group", "options", "code"),
    [
        ("", {}, ErrorCode.INVALID_GROUP_ID),
        ("new", {}, ErrorCode.UNKNOWN_MEMBER_ID),
        ("new", {"session_ms": 5}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ("g", {"protocols": {}}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ("g", {}, ErrorCode.UNKNOWN_MEMBER_ID),
        ("g", {"instance": "i"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ("g", {"protocols": OTHER_PROTOCOL}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ("g", {"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
    ],
)
def test_a_member_that_is_refused_hears_the_id_it_came_with(group: str, options: dict[str, Any], code: ErrorCode) -> None:
    response = refused(group, **options)
    assert (response.error_code, response.member_id) == (code, "me")


@pytest.mark.parametrize("version", range(10))
def test_no_protocol_is_null_where_the_version_can_say_so_and_empty_where_it_cannot(version: int) -> None:
    for group in ("", "g"):
        assert refused(group, version).protocol_name == (None if version >= 7 else "")
