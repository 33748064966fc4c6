"""Definitions of Spark's declarative pipelines, run in the session of the test: what `spark-pipelines run` does in a Spark of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.pipelines.flow import AutoCdcFlow, Flow
from pyspark.pipelines.graph_element_registry import GraphElementRegistry
from pyspark.pipelines.output import Output, Sink


class Definitions(GraphElementRegistry):
    """Flows into sinks, which are all that the pages define."""

    def __init__(self) -> None:
        self._sinks: dict[str, Sink] = {}
        self._flows: list[Flow] = []

    def register_output(self, output: Output) -> None:
        assert isinstance(output, Sink), f"{output.name} is not a sink"
        self._sinks[output.name] = output

    def register_flow(self, flow: Flow) -> None:
        self._flows.append(flow)

    def register_auto_cdc_flow(self, flow: AutoCdcFlow) -> None:
        raise NotImplementedError

    def register_sql(self, sql_text: str, file_path: Path) -> None:
        raise NotImplementedError

    def run(self) -> None:
        """Each flow once, with what there is."""
        for flow in self._flows:
            sink, rows = self._sinks[flow.target], _query(flow)
            writer = rows.writeStream.format(sink.format).options(**sink.options).option("checkpointLocation", f"checkpoint-of-{flow.name}")
            writer.trigger(availableNow=True).start().awaitTermination()
        self._flows.clear()


def _query(flow: Flow) -> Any:
    return flow.func()
