"""What became of each thing that one call asked for.

An admin call names many topics, groups or partitions, and each succeeds or fails by itself. `Outcomes` is Java's map of futures without the
futures: by the time it is returned every key has its value or its error. It never holds a key that was not asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

from barnabas.errors import KafkaError

K = TypeVar("K")
V = TypeVar("V")


class Outcomes(Mapping[K, V]):
    """A mapping over all keys that were asked for, in their order: `outcomes[key]` is the value, or raises that key's error.

    `all()` is for those who want everything or nothing; `successes` and `errors` are for those who go on with what there is. Iteration
    over `values()` or `items()` raises at the first key that failed, as `all()` does.
    """

    __slots__ = ("_errors", "_successes", "_keys")  # noqa: RUF023

    def __init__(self, keys: Iterable[K], successes: Mapping[K, V], errors: Mapping[K, KafkaError]) -> None:
        self._keys = tuple(dict.fromkeys(keys))
        self._successes = {key: successes[key] for key in self._keys if key in successes}
        self._errors = {key: errors[key] for key in self._keys if key in errors}
        assert len(self._successes) + len(self._errors) == len(self._keys), "every key has one outcome"

    @property
    def successes(self) -> dict[K, V]:
        """The values of the keys that did not fail."""
        return dict(self._successes)

    @property
    def errors(self) -> dict[K, KafkaError]:
        """The errors of the keys that failed; empty when all went well."""
        return dict(self._errors)

    def all(self) -> dict[K, V]:
        """Every key with its value, or the error of the first key that failed."""
        for error in self._errors.values():
            raise error
        return dict(self._successes)

    def __getitem__(self, key: K) -> V:
        if key in self._errors:
            raise self._errors[key]
        return self._successes[key]

    def __contains__(self, key: object) -> bool:
        return key in self._errors or key in self._successes

    def __iter__(self) -> Iterator[K]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)

    def __repr__(self) -> str:
        shown = {key: self._errors[key] if key in self._errors else self._successes[key] for key in self._keys}
        return f"Outcomes({shown!r})"


def failed(keys: Iterable[K], error: KafkaError) -> dict[K, KafkaError]:
    """One error for all of some keys."""
    return dict.fromkeys(keys, error)
