"""The iteration order of Kafka's maps, which are hash maps of Scala and Java.

JSON does not depend on it. But our znodes are compared byte for byte with Kafka's, so they use Kafka's order. Each function takes the keys
in the order in which Kafka inserts them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Final, TypeVar

from barnabas.java_hash import java_hash

K = TypeVar("K", bound=Hashable)
_MASK: Final = 0xFFFFFFFF
_SMALL_MAP: Final = 4  # Scala's immutable maps of up to four keys keep the order of insertion


def scala_mutable(keys: Iterable[str]) -> list[str]:
    """scala.collection.mutable.HashMap with strings as keys."""
    return scala_buckets({key: java_hash(key) for key in keys})


def scala_buckets(hashes: Mapping[K, int]) -> list[K]:
    """The keys of Scala's mutable HashMap or HashSet, initially empty: 16 buckets, doubled at three quarters, each bucket sorted by hash.

    `hashes` has each key's hashCode.
    """
    buckets = 16
    while len(hashes) >= buckets * 3 // 4:
        buckets *= 2
    spread = {key: _spread(hashed & _MASK) for key, hashed in hashes.items()}
    return sorted(hashes, key=lambda key: (spread[key] & (buckets - 1), _signed(spread[key])))


def scala_immutable(keys: Iterable[str]) -> list[str]:
    """scala.collection.immutable.Map: insertion order up to four keys, above that a trie of 5 bits of the hash per level."""
    keys = list(dict.fromkeys(keys))
    if len(keys) <= _SMALL_MAP:
        return keys
    return _trie([(_improve(java_hash(key) & _MASK), key) for key in keys], 0)


def java_properties(keys: Iterable[str]) -> list[str]:
    """java.util.Properties, a ConcurrentHashMap inside: 16 bins, doubled at three quarters, new keys last in their bin."""
    bins: list[list[tuple[int, str]]] = [[] for _ in range(16)]
    for count, key in enumerate(dict.fromkeys(keys), 1):
        spread = _spread(java_hash(key) & _MASK) & 0x7FFFFFFF
        bins[spread & (len(bins) - 1)].append((spread, key))
        if count >= len(bins) * 3 // 4:
            bins = _doubled(bins)
    return [key for entries in bins for _, key in entries]


def java_hash_map(keys: Iterable[str]) -> list[str]:
    """java.util.HashMap that was made for this number of keys: bins to the next power of two, doubled above three quarters."""
    keys = list(dict.fromkeys(keys))
    bins = 1
    while bins < len(keys):
        bins *= 2
    while len(keys) > bins * 3 / 4:
        bins *= 2
    return sorted(keys, key=lambda key: _spread(java_hash(key) & _MASK) & (bins - 1))


def _spread(hashed: int) -> int:
    return hashed ^ (hashed >> 16)


def _signed(hashed: int) -> int:
    return hashed - (1 << 32) if hashed >> 31 else hashed


def _improve(hashed: int) -> int:
    hashed = (hashed + ~(hashed << 9)) & _MASK
    hashed ^= hashed >> 14
    hashed = (hashed + (hashed << 4)) & _MASK
    return hashed ^ (hashed >> 10)


def _trie(entries: Sequence[tuple[int, str]], shift: int) -> list[str]:
    """A node lists first its own entries, then its sub-nodes, both by their 5 bits."""
    if shift >= 32:  # full collision: insertion order
        return [key for _, key in entries]
    slots: dict[int, list[tuple[int, str]]] = {}
    for entry in entries:
        slots.setdefault((entry[0] >> shift) & 31, []).append(entry)
    ordered = [slots[slot] for slot in sorted(slots)]
    here = [slot[0][1] for slot in ordered if len(slot) == 1]
    return here + [key for slot in ordered if len(slot) > 1 for key in _trie(slot, shift + 5)]


def _doubled(bins: list[list[tuple[int, str]]]) -> list[list[tuple[int, str]]]:
    """Moves bins as Java does: the longest tail with the same target keeps its order; the entries before it are prepended one by one."""
    size = len(bins)
    result: list[list[tuple[int, str]]] = [[] for _ in range(size * 2)]
    for index, entries in enumerate(bins):
        if not entries:
            continue
        tail = len(entries) - 1
        while tail > 0 and (entries[tail - 1][0] & size) == (entries[-1][0] & size):
            tail -= 1
        target = index + (entries[-1][0] & size)
        result[target] = entries[tail:]
        for entry in entries[:tail]:
            result[index + (entry[0] & size)].insert(0, entry)
    return result
