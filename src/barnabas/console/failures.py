"""Errors of the cluster in words: what happened, and what the person can do about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from barnabas.client import errors as kafka
from barnabas.console.config import ConfigFault
from barnabas.errors import KafkaError
from barnabas.protocol.errors import UnsupportedVersion
from barnabas.security.errors import AuthenticationError, AuthorizationError

STATUS_REFUSED: Final = 422


@dataclass(frozen=True)
class Failure:
    """An error as a page shows it."""

    status: int
    title: str
    text: str  # the cluster's own words
    fix: str


class UnusableField(ValueError):
    """A field of a form cannot be used; the message is a sentence for the person who filled it."""


class NotThere(KafkaError):
    """The page's topic, group or broker does not exist; the message is a sentence about it."""


_FAILURES: Final[tuple[tuple[type[Exception], int, str, str], ...]] = (
    (NotThere, 404, "Not found", "It may have been deleted. Look for it in the list."),
    (
        kafka.UnknownTopicOrPartition,
        404,
        "This topic does not exist",
        "It may have been deleted, or your user may not see it. Look for it in the list of topics.",
    ),
    (
        kafka.UnknownTopicId,
        404,
        "This topic does not exist",
        "It was deleted, perhaps to be created again. Open it from the list of topics.",
    ),
    (
        kafka.GroupIdNotFound,
        404,
        "This group does not exist",
        "A group exists while it has members or offsets. Look for it in the list of groups.",
    ),
    (kafka.TransactionalIdNotFound, 404, "This transactional id does not exist", "It has expired, or has never been used."),
    (AuthenticationError, 401, "The cluster refused the login", "Log in again. If the password was changed, use the new one."),
    (
        AuthorizationError,
        403,
        "Your user may not do this",
        "Ask who administers the cluster for an ACL with the operation that the text names, or log in as another user.",
    ),
    (
        UnsupportedVersion,
        501,
        "This broker does not offer this",
        "The broker is older than this feature, or another product. The rest of the console works.",
    ),
    (kafka.TopicExists, 409, "A topic with this name exists", "Choose another name."),
    (kafka.NonEmptyGroup, 409, "The group has members", "Stop its consumers, and try again when the group is empty."),
    (kafka.GroupSubscribedToTopic, 409, "The group reads this topic", "Stop its consumers, and try again when the group is empty."),
    (kafka.ReassignmentInProgress, 409, "The partition is being moved", "Wait for the reassignment, or cancel it."),
    (kafka.ElectionNotNeeded, 409, "Nothing to elect", "The preferred replica leads this partition already."),
    (
        kafka.PreferredLeaderNotAvailable,
        409,
        "The preferred replica cannot lead",
        "It is not in sync, or its broker is down. Start that broker.",
    ),
    (kafka.PolicyViolation, STATUS_REFUSED, "A policy of the cluster forbids this", "Change the request as the text says."),
    (kafka.ThrottlingQuotaExceeded, 429, "Too many changes in a short time", "A quota limits changes of topics. Try again in a minute."),
    (kafka.NotEnoughReplicas, 503, "Too few replicas are in sync", "Start the brokers that are down, and try again."),
    (kafka.NotController, 503, "The controller has just changed", "Try again."),
    (kafka.CoordinatorNotAvailable, 503, "The coordinator is not available yet", "Try again in some seconds."),
    (kafka.CoordinatorLoadInProgress, 503, "The coordinator is loading its log", "Try again in some seconds."),
    (
        kafka.Timeout,
        504,
        "The cluster does not answer",
        "Check that its brokers run and that the console reaches their advertised listeners.",
    ),
    (kafka.NetworkError, 503, "The connection to the cluster is broken", "Check that its brokers run, and try again."),
    (ConfigFault, 500, "The console is not configured for this", "Change console.toml, and start the console again."),
)


def failure_of(error: KafkaError) -> Failure:
    """The page of an error. An error without a row is a refusal of what was entered."""
    text = " ".join(str(error).split()) or _words(type(error).__name__)
    for kind, status, title, fix in _FAILURES:
        if isinstance(error, kind):
            return Failure(status, title, text, fix)
    if error.retriable:
        return Failure(503, _words(type(error).__name__), text, "Try again in some seconds.")
    return Failure(STATUS_REFUSED, _words(type(error).__name__), text, "Correct what the text names, and try again.")


def sentence(error: KafkaError) -> str:
    """An error in one line, for a place on a page."""
    failure = failure_of(error)
    return f"{failure.title}: {failure.text}" if failure.text and failure.text != failure.title else failure.title


def _words(name: str) -> str:
    """The name of an error's class as words: `InvalidTopic` becomes "Invalid topic"."""
    words = "".join(f" {character.lower()}" if character.isupper() else character for character in name).strip()
    return words[:1].upper() + words[1:]
