"""The results of an admin call on several keys.

An admin call names several topics, groups or partitions, and each succeeds or fails on its own. `Outcomes` corresponds to Java's map of
futures, but it is complete when it is returned: every requested key has a value or an error, and there are no other keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

from barnabas.errors import KafkaError

K = TypeVar("K")
V = TypeVar("V")


class Outcomes(Mapping[K, V]):
    """A mapping over all requested keys in their order: `outcomes[key]` is the value, or raises that key's error.

    Use `all()` to require that every key succeeded, `successes` and `errors` to handle partial results. Iteration over `values()` or
    `items()` raises at the first key that failed, as `all()` does.
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
        """The errors of the keys that failed; empty if no key failed."""
        return dict(self._errors)

    def all(self) -> dict[K, V]:
        """All keys with their values; raises the error of the first key that failed."""
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
    """Maps all keys to the same error."""
    return dict.fromkeys(keys, error)
