"""A query's progress with the `description` and `metrics` of the source.

Spark fills both from Java objects: for a Python source the description is the name of a class, and there are no metrics. The source puts
them beside the offsets in `latestOffset`; `readable` moves them to their places.

    from pyspark_barnabas.query_progress import readable

    readable(query.lastProgress).sources[0].description  # "barnabas: subscribe orders at localhost:9092"
    readable(query.lastProgress).sources[0].metrics["maxOffsetsBehindLatest"]
"""

from __future__ import annotations

import json
from typing import Any

from pyspark.sql.streaming.listener import StreamingQueryProgress

from pyspark_barnabas.offsets import METRICS, SOURCE


def readable(progress: StreamingQueryProgress) -> StreamingQueryProgress:
    """The same progress; sources of other packages are unchanged."""
    document = json.loads(progress.json)
    document["sources"] = [described(source) for source in document["sources"]]
    return StreamingQueryProgress.fromJson(document)


def described(source: dict[str, Any]) -> dict[str, Any]:
    """A source of a progress in JSON, with description and metrics if it is one of ours."""
    shown = source.get("latestOffset")
    if not isinstance(shown, dict) or SOURCE not in shown:
        return source
    metrics = {name: str(value) for name, value in shown.get(METRICS, {}).items()}
    latest = {name: value for name, value in shown.items() if name not in (SOURCE, METRICS)}
    return {**source, "description": shown[SOURCE], "latestOffset": latest, "metrics": metrics}
