"""The types of keys and values, for type checkers: Producer[K, V] and Consumer[K, V].

Without a serializer from which they follow, and without brackets, both are Any: settings in a mapping say nothing to a type checker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    K = TypeVar("K", default=Any)
    V = TypeVar("V", default=Any)
else:
    from typing import TypeVar  # defaults of type variables are Python 3.13's

    K = TypeVar("K")
    V = TypeVar("V")
