"""Every API, sent by clients with and without ACLs, is answered as Apache Kafka answers it: same errors, in the same places.

`make authorization-matrix` records the answers of Apache Kafka anew.
"""

from __future__ import annotations

from barnabas.broker.handlers import CONTROL, HANDLERS
from barnabas.protocol.registry import APIS
from tests.integration.security.matrix.case import COLUMNS, KAFKA, ZOOKEEPER_KAFKA
from tests.integration.security.matrix.cases.table import CASES
from tests.integration.security.matrix.record import recorded


def test_every_api_has_a_row_for_its_highest_version_and_all_columns() -> None:
    rows = recorded(KAFKA) | recorded(ZOOKEEPER_KAFKA)
    for api in (APIS[key] for key in (*HANDLERS, *CONTROL)):
        names = [f"{case.name} v{api.stable_version}" for case in CASES if case.api is api]
        assert any(set(COLUMNS) <= rows.get(name, {}).keys() for name in names), f"{api} has no row for its highest version"
