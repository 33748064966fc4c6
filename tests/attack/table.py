"""All attacks, in the order in which they run. A new file in this folder gets a line here."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass

from tests.attack import (
    bad_last_record,
    expressions,
    gzip_bombs,
    gzip_large,
    gzip_partitions,
    many_elements,
    many_headers,
    members,
    push_telemetry,
    quiet,
    recompression,
    topics,
    zstd_headers,
)

AttackFunction = Callable[[str], AsyncGenerator[None, None]]


@dataclass(frozen=True)
class Attack:
    """`description` is one line for the reader of this table. `overrides` are settings of the broker that is attacked."""

    name: str
    description: str
    run: AttackFunction
    overrides: tuple[str, ...] = ()


CROWD = 20  # connections of an attack by many

ATTACKS = (
    Attack("quiet", "nothing at all: what the well-behaved client measures on a broker of its own", quiet.attack),
    Attack("zstd-headers", "5 batches of 8 KB with a record of 45 million headers", zstd_headers.attack),
    Attack("many-headers", "5 batches of a few KB with 300 records of 50,000 headers", many_headers.attack),
    Attack("gzip-bombs", "60 batches of 92 KB that unfold into 94 MB", gzip_bombs.attack),
    Attack("gzip-large", "40 batches that unfold into 24 MB of small records", gzip_large.attack),
    Attack("gzip-partitions", "requests with 60 batches that unfold into a megabyte each", gzip_partitions.attack),
    Attack("bad-last-record", "batches of 100,000 records of which the last is wrong", bad_last_record.attack),
    Attack("recompression", "batches of 5 MB for a topic with another codec", recompression.attack),
    *(
        Attack(name, f"{many_elements.TIMES} requests with {count} elements", many_elements.attack_with(name))
        for name, (_, _, count) in many_elements.REQUESTS.items()
    ),
    Attack("fetch-crowd", f"{CROWD} connections with Fetch of 29,000 partitions", many_elements.attack_with("fetch-unknown", CROWD)),
    Attack("metadata-crowd", f"{CROWD} connections with Metadata of 49,000 topics", many_elements.attack_with("metadata", CROWD)),
    Attack(
        "expressions",
        "subscriptions by expressions that take seconds to compile or to match, each in a group of its own",
        expressions.attack,
    ),
    Attack("members", "sixty members of a group with 20 MB of metadata each, and 5,000 ids that are never used", members.attack),
    Attack("push-telemetry", "pushes of client metrics that unfold into 8 MB of tiny messages and fields", push_telemetry.attack),
    Attack("topics", "metadata of 40,000 topics that do not exist", topics.attack, ("auto.create.topics.enable=true",)),
)
