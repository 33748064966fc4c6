"""Why a data directory cannot be served, or cannot be converted. The text is for the user and names what to do."""

from __future__ import annotations


class LayoutError(Exception):
    """The data directory is not what the command needs."""


class WrongLayout(LayoutError):
    """The directory was made for another number of brokers, or holds the data of several layouts, or a conversion of it is unfinished."""


class NotConvertible(LayoutError):
    """The data cannot be converted as it is. Nothing was changed."""


class DirectoryInUse(LayoutError):
    """A broker runs on the directory."""
