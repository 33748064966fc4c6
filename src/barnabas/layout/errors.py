"""The reasons why a data directory cannot be used or converted. The text is for the user and names the fix."""

from __future__ import annotations


class LayoutError(Exception):
    """The data directory does not suit the command."""


class WrongLayout(LayoutError):
    """The directory was made for another number of brokers, holds the data of several layouts, or has an unfinished conversion."""


class NotConvertible(LayoutError):
    """The data cannot be converted as it is. Nothing was changed."""


class NeedsStart(NotConvertible):
    """A start and a clean stop of the brokers, as many as there were, makes the data convertible."""


class DirectoryInUse(LayoutError):
    """A broker is running on the directory."""
