"""The type parameters of keys and values, for type checkers: Producer[K, V] and Consumer[K, V].

Without serializers from which they follow, and without brackets, both are Any: a type checker cannot read settings in a mapping.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    K = TypeVar("K", default=Any)
    V = TypeVar("V", default=Any)
else:
    from typing import TypeVar  # type variables with defaults need Python 3.13

    K = TypeVar("K")
    V = TypeVar("V")
