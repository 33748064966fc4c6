"""What `change_capture.declare` hands to Spark Declarative Pipelines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pyspark_barnabas.pipelines import change_capture
from pyspark_barnabas.pipelines.change_capture import Changes

registries = pytest.importorskip("pyspark.pipelines.graph_element_registry")


def test_a_table_and_a_flow_of_auto_cdc_are_declared() -> None:
    declared: list[Any] = []

    class Registry(registries.GraphElementRegistry):  # type: ignore[misc, name-defined]
        def register_output(self, output: Any) -> None:
            declared.append(output)

        register_flow = register_auto_cdc_flow = register_output

        def register_sql(self, sql_text: str, file_path: Path) -> None:
            raise AssertionError

    assert change_capture.has_auto_cdc()
    with registries.graph_element_registration_context(Registry()):
        change_capture.declare("customers", "changes", Changes(schema="id INT", keys=["id"]), format="delta")
    table, flow = declared
    assert (table.name, table.format) == ("customers", "delta")
    assert (flow.target, flow.source, flow.stored_as_scd_type) == ("customers", "changes", 1)
    assert "_sequence" in str(flow.sequence_by)
    assert "_deleted" in str(flow.apply_as_deletes)
