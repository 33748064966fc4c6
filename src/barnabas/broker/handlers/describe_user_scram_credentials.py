"""DescribeUserScramCredentials: the SCRAM mechanisms and iterations of the named users, or of all users that have credentials.

Version 0.
Behaviour: salts and keys are never returned.
Authorization: DESCRIBE on the cluster.
Errors, of the whole
- CLUSTER_AUTHORIZATION_FAILED.
Errors, of a user
- RESOURCE_NOT_FOUND (no credential), DUPLICATE_RESOURCE (named twice).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.requests.reply import Reply
from barnabas.broker.security.scram_changes import MECHANISMS
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.describe_user_scram_credentials_request import DescribeUserScramCredentialsRequest
from barnabas.protocol.messages.describe_user_scram_credentials_response import (
    CredentialInfo,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from barnabas.security.operations import AclOperation

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request
    from barnabas.broker.security.scram_users import ScramUser

_NUMBERS: Final = {mechanism: number for number, mechanism in MECHANISMS.items()}


def handle(broker: Broker, request: Request[DescribeUserScramCredentialsRequest]) -> Reply[DescribeUserScramCredentialsResponse]:
    if not broker.access.allows_on_cluster(request, AclOperation.DESCRIBE):
        return Reply.now(request, _denied(request.message))
    return Reply.awaiting(request, _describe(broker, request))


async def _describe(broker: Broker, request: Request[DescribeUserScramCredentialsRequest]) -> DescribeUserScramCredentialsResponse:
    names = [user.name for user in request.message.users or ()]
    users = await broker.scram_users.describe(names)
    return DescribeUserScramCredentialsResponse(results=[_result(user) for user in users])


def _result(user: ScramUser) -> DescribeUserScramCredentialsResult:
    if user.error is not None:
        return DescribeUserScramCredentialsResult(user.name, user.error.code, str(user.error))
    credentials = [CredentialInfo(_NUMBERS[mechanism], iterations) for mechanism, iterations in user.iterations.items()]
    return DescribeUserScramCredentialsResult(user.name, credential_infos=credentials)


def _denied(message: DescribeUserScramCredentialsRequest) -> DescribeUserScramCredentialsResponse:
    """As Kafka answers: an entry without a name for each user, and no text."""
    error = int(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    results = [DescribeUserScramCredentialsResult("", error, None) for _ in message.users or ()]
    return DescribeUserScramCredentialsResponse(0, error, None, results)
