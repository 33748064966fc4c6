"""The errors of command-line tools, with the texts of Kafka's tools, and how a tool ends.

Kafka's tools print the message of a Java exception and often its stack trace; ours print the message and never a trace. Where Kafka
prints the message only in a trace, ours print the line with the exception's Java name, because people search for that.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final

from barnabas.errors import KafkaError
from barnabas.protocol.errors import ErrorCode
from barnabas.tools.command_line.options import KAFKA_VERSION, ShowUsage, ShowVersion, UsageError

_COMMON: Final = "org.apache.kafka.common"
# Java's exceptions are mostly named after the error codes; these are not.
_JAVA_NAMES: Final = {
    -1: "UnknownServerException",
    2: "CorruptRecordException",
    7: "TimeoutException",
    10: "RecordTooLargeException",
    11: "ControllerMovedException",
    12: "OffsetMetadataTooLarge",
    13: "NetworkException",
    17: "InvalidTopicException",
    18: "RecordBatchTooLargeException",
    29: "TopicAuthorizationException",
    30: "GroupAuthorizationException",
    31: "ClusterAuthorizationException",
    36: "TopicExistsException",
    40: "InvalidConfigurationException",
    45: "OutOfOrderSequenceException",
    46: "DuplicateSequenceException",
    49: "InvalidPidMappingException",
    50: "InvalidTxnTimeoutException",
    53: "TransactionalIdAuthorizationException",
    58: "SaslAuthenticationException",
    61: "DelegationTokenDisabledException",
    64: "UnsupportedByAuthenticationException",
    65: "DelegationTokenAuthorizationException",
    68: "GroupNotEmptyException",
    96: "FeatureUpdateFailedException",
    97: "PrincipalDeserializationException",
    106: "FetchSessionTopicIdException",
    128: "InvalidRegularExpression",
}
_CLIENT_NAMES: Final = {
    "IllegalArgument": "java.lang.IllegalArgumentException",
    "IllegalState": "java.lang.IllegalStateException",
    "Disconnected": f"{_COMMON}.errors.DisconnectException",
    "SslAuthentication": f"{_COMMON}.errors.SslAuthenticationException",
    "SerializationError": f"{_COMMON}.errors.SerializationException",
    "Wakeup": f"{_COMMON}.errors.WakeupException",
}


_CONSTRUCTIONS: Final = {
    "Admin": "create new KafkaAdminClient",
    "Producer": "construct kafka producer",
    "Consumer": "construct kafka consumer",
}


class ToolError(Exception):
    """The base class of errors of tools; `java_name` is Kafka's exception."""

    java_name = "java.lang.RuntimeException"


class BadArgument(ToolError):
    """IllegalArgumentException: an option's value, or options that do not go together."""

    java_name = "java.lang.IllegalArgumentException"


class Terse(ToolError):
    """TerseException: Kafka's tools print these without a trace, too."""

    java_name = "org.apache.kafka.tools.TerseException"


class AdminOperation(ToolError):
    java_name = "org.apache.kafka.server.common.AdminOperationException"


class AdminCommandFailed(ToolError):
    java_name = "org.apache.kafka.server.common.AdminCommandFailedException"


class NoSuchFile(ToolError):
    """NoSuchFileException, whose message is the path and nothing else."""

    java_name = "java.nio.file.NoSuchFileException"


class Unreadable(ToolError):
    """IOException: a file with a plan that does not exist."""

    java_name = "java.io.IOException"


class ClientNotMade(ToolError):
    """Kafka's clients raise this for wrong addresses; the reason is in the cause."""

    java_name = f"{_COMMON}.KafkaException"

    def __init__(self, kind: str, cause: Exception) -> None:
        super().__init__(f"Failed to {_CONSTRUCTIONS.get(kind, 'construct kafka client')}")
        self.cause = cause


class ConfigRefused(ToolError):
    """ConfigException: an invalid setting of a client."""

    java_name = f"{_COMMON}.config.ConfigException"


class NotSent(KafkaError):
    """KafkaException: no broker was found for a request; the reason is in the cause."""

    def __init__(self, message: str, cause: KafkaError) -> None:
        super().__init__(message)
        self.cause = cause


@contextmanager
def sending_to_all(request: str) -> Generator[None, None, None]:
    """Requests that go to every broker raise NotSent if no broker is found."""
    try:
        yield
    except KafkaError as error:
        if error.code != ErrorCode.REQUEST_TIMED_OUT:
            raise
        raise NotSent(f"Failed to find brokers to send {request}", error) from error


class Execution(ToolError):
    """ExecutionException: an error of the cluster that Kafka's tool prints with the name of its class."""

    java_name = "java.util.concurrent.ExecutionException"

    def __init__(self, cause: KafkaError) -> None:
        super().__init__(described(cause))
        self.cause = cause


class WrappedExecution(ToolError):
    """The same in a RuntimeException, as many methods of Kafka's tools throw it."""

    def __init__(self, cause: KafkaError) -> None:
        super().__init__(f"{Execution.java_name}: {described(cause)}")
        self.cause = cause


@contextmanager
def execution() -> Generator[None, None, None]:
    """Errors of the cluster become Execution."""
    try:
        yield
    except KafkaError as error:
        raise Execution(error) from error


@contextmanager
def wrapped_execution() -> Generator[None, None, None]:
    """Errors of the cluster become WrappedExecution."""
    try:
        yield
    except KafkaError as error:
        raise WrappedExecution(error) from error


class Ended(BaseException):
    """Ends the tool with this code; everything is printed already. Like SystemExit, it is not an Exception."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


def complain(message: str) -> Ended:
    """Prints to stderr; `raise complain(…)` ends the tool with 1."""
    print(message, file=sys.stderr)
    return Ended(1)


def finish(body: Callable[[], int | None], failed: Callable[[Exception], int]) -> int:
    """Runs a tool to its exit code. What it raises goes to `failed`, which prints it the way this tool prints errors."""
    logging.basicConfig(level=logging.WARNING, format="[%(asctime)s] %(levelname)s %(message)s (%(name)s)")  # as Kafka's tools log
    try:
        return body() or 0
    except ShowUsage as usage:
        print(f"{usage}\n{usage.help_text}", file=sys.stderr)
        return 1
    except ShowVersion:
        print(KAFKA_VERSION)
        return 0
    except Ended as ended:
        return ended.code
    except BrokenPipeError:
        raise  # `barnabas` ends quietly on it
    except Exception as error:
        return failed(error)


def failed_with_message(error: Exception) -> int:
    """Prints the message on stderr and returns 1, as most of Kafka's tools do."""
    print(message_of(error), file=sys.stderr)
    print_cause(error)
    return 1


def failed_with_name(error: Exception) -> int:
    """Prints the exception with its Java name, except for a wrong command line, as those of Kafka's tools do that let Java print it."""
    print(message_of(error) if isinstance(error, UsageError) else described(error), file=sys.stderr)
    print_cause(error)
    return 1


def print_cause(error: Exception) -> None:
    """Prints the cause of an error if its message does not contain it."""
    cause = error.cause if isinstance(error, Execution | WrappedExecution) else error
    if isinstance(cause, ClientNotMade | NotSent):
        print(f"Caused by: {described(cause.cause)}", file=sys.stderr)


def message_of(error: BaseException) -> str:
    """Java's getMessage()."""
    if isinstance(error, KeyError) and error.args:
        return str(error.args[0])
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}" if error.strerror else str(error.filename)
    text = str(error)
    if not text and isinstance(error, KafkaError):
        text = _CODES[error.code].message if error.code in _CODES else ""
    return text or type(error).__name__


def java_name(error: BaseException) -> str:
    """The full name of Java's exception for this one."""
    if isinstance(error, ToolError):
        return error.java_name
    if isinstance(error, NotSent):
        return f"{_COMMON}.KafkaException"
    if isinstance(error, UsageError):
        return "joptsimple.OptionException"
    named = _CLIENT_NAMES.get(type(error).__name__)
    if named is not None:
        return named
    if isinstance(error, KafkaError):
        return f"{_COMMON}.errors.{_simple_java_name(error.code)}"
    if isinstance(error, ValueError):
        return "java.lang.IllegalArgumentException"
    return "java.lang.RuntimeException"


def described(error: BaseException) -> str:
    """Java's toString(): the name, and the message if there is one."""
    message = message_of(error)
    return f"{java_name(error)}: {message}" if message else java_name(error)


def _simple_java_name(code: int) -> str:
    special = _JAVA_NAMES.get(code)
    if special is not None:
        return special
    name = _CODES[code].name if code in _CODES else "UNKNOWN_SERVER"
    words = [word.capitalize() for word in re.sub("_(ERROR|EXCEPTION|FAILED|NUMBER)$", "", name).split("_")]
    return "".join(words) + "Exception"


_CODES: Final = {int(code): code for code in ErrorCode}
