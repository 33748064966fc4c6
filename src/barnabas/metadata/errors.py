"""ZooKeeper's errors as exceptions, each with ZooKeeper's code.

A metadata store returns them to the controller and the broker. They never reach a client of the broker as they are: the code that sent the
request turns them into Kafka's errors.
"""

from __future__ import annotations


class TreeError(Exception):
    """A failed request to the metadata store. `operation` is the index of the failed operation inside a multi, else None."""

    code: int = -1

    def __init__(self, path: str, message: str = "", operation: int | None = None) -> None:
        super().__init__(message or f"{type(self).__name__} for {path}")
        self.path = path
        self.operation = operation


class StoreFailure(TreeError):
    """SYSTEMERROR: the store could not save a change (a full or broken disk); no part of it was applied."""

    code = -1


class ConnectionLoss(TreeError):
    """The outcome is unknown. Only a remote store returns this, and only after its own retries."""

    code = -4


class BadArguments(TreeError):
    """An invalid path, or a request beyond the limits of the tree."""

    code = -8


class NoNode(TreeError):
    code = -101


class NoAuth(TreeError):
    code = -102


class BadVersion(TreeError):
    code = -103


class NoChildrenForEphemerals(TreeError):
    code = -108


class NodeExists(TreeError):
    code = -110


class NotEmpty(TreeError):
    code = -111


class SessionExpired(TreeError):
    code = -112


class AuthFailed(TreeError):
    code = -115


class QuotaExceeded(TreeError):
    """The tree has reached its limit of nodes, or the session its limit of watches."""

    code = -125


class StoreUnusable(Exception):
    """The store cannot be opened: another process uses it, it belongs to another program, or it is damaged. Names the file and the fix."""
