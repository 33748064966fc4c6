"""ZooKeeper's errors as exceptions, each with ZooKeeper's code.

A store answers with them, the controller and the broker decide by them. They never reach a client of the broker as they are:
whoever asked the tree turns them into Kafka's errors.
"""

from __future__ import annotations


class TreeError(Exception):
    """A request that the tree refused. `operation` is the place of the refused operation inside a multi, else None."""

    code: int = -1

    def __init__(self, path: str, message: str = "", operation: int | None = None) -> None:
        super().__init__(message or f"{type(self).__name__} for {path}")
        self.path = path
        self.operation = operation


class StoreFailure(TreeError):
    """SYSTEMERROR: the store could not keep a change (a full or broken disk); nothing of it was applied."""

    code = -1


class ConnectionLoss(TreeError):
    """The outcome is unknown. Only a remote store answers this, and only after its own retries."""

    code = -4


class BadArguments(TreeError):
    """A path that is not one, or a request beyond the limits of the tree."""

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
    """The tree holds as many nodes, or the session as many watches, as its limits allow."""

    code = -125


class StoreUnusable(Exception):
    """The store cannot be opened: another process has it, or it is not ours, or it is damaged. The text names file and fix."""
