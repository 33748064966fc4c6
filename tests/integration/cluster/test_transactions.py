"""The short form of `transactions`: all kinds of clients at once."""

from __future__ import annotations

from tests.cluster import Cluster
from tests.integration.cluster.transactions import KINDS, run


def test_clients_that_begin_again_at_once_get_no_error_and_each_record_once(three: Cluster) -> None:
    run(three, KINDS, 15)
