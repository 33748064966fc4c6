"""AlterUserScramCredentials: sets and deletes SCRAM credentials of users.

Version 0.
Behaviour
- only the active controller serves it.
- each user has its own result. The client sends the salted password, never the password; the broker stores the keys that follow from it.
- the quotas of a user stay.
Authorization: ALTER on the cluster.
Errors, of a user
- NOT_CONTROLLER, CLUSTER_AUTHORIZATION_FAILED (every user of the request).
- UNACCEPTABLE_CREDENTIAL (no name, too few or too many iterations), UNSUPPORTED_SASL_MECHANISM.
- RESOURCE_NOT_FOUND (there is no credential to delete), DUPLICATE_RESOURCE (named twice).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.requests.reply import Reply
from barnabas.broker.security.scram_changes import ScramUpsertion
from barnabas.errors import KafkaError, NotController
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.alter_user_scram_credentials_request import AlterUserScramCredentialsRequest
from barnabas.protocol.messages.alter_user_scram_credentials_response import (
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from barnabas.security.operations import AclOperation

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.requests.request import Request


def handle(broker: Broker, request: Request[AlterUserScramCredentialsRequest]) -> Reply[AlterUserScramCredentialsResponse]:
    try:
        if not broker.controller.is_active:
            raise NotController(ErrorCode.NOT_CONTROLLER.message)
        broker.access.require_on_cluster(request, AclOperation.ALTER)
    except KafkaError as error:
        return Reply.now(request, _refused(request.message, error))
    return Reply.awaiting(request, _alter(broker, request))


async def _alter(broker: Broker, request: Request[AlterUserScramCredentialsRequest]) -> AlterUserScramCredentialsResponse:
    message = request.message
    outcomes = await broker.scram_users.alter(
        [(deletion.name, deletion.mechanism) for deletion in message.deletions],
        [
            ScramUpsertion(upsertion.name, upsertion.mechanism, upsertion.iterations, upsertion.salt, upsertion.salted_password)
            for upsertion in message.upsertions
        ],
    )
    return AlterUserScramCredentialsResponse(0, [_result(user, error) for user, error in outcomes.items()])


def _refused(message: AlterUserScramCredentialsRequest, error: KafkaError) -> AlterUserScramCredentialsResponse:
    users = {deletion.name for deletion in message.deletions} | {upsertion.name for upsertion in message.upsertions}
    return AlterUserScramCredentialsResponse(0, [_result(user, error) for user in sorted(users)])


def _result(user: str, error: KafkaError | None) -> AlterUserScramCredentialsResult:
    if error is None:
        return AlterUserScramCredentialsResult(user, 0, None)
    return AlterUserScramCredentialsResult(user, error.code, str(error))
