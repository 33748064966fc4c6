"""A query's progress with what the source says of itself in the places where people look for it: `description` and `metrics`.

Spark fills both from its own Java objects: for a source in Python the description is the name of a class and there are no metrics. The
source puts them where it can, beside the offsets in `latestOffset`; here they are moved to their places.

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
    """The same progress; sources that are not of this package are as they were."""
    document = json.loads(progress.json)
    document["sources"] = [described(source) for source in document["sources"]]
    return StreamingQueryProgress.fromJson(document)


def described(source: dict[str, Any]) -> dict[str, Any]:
    """A source of a progress in JSON, with its own description and metrics if it is one of ours."""
    shown = source.get("latestOffset")
    if not isinstance(shown, dict) or SOURCE not in shown:
        return source
    metrics = {name: str(value) for name, value in shown.get(METRICS, {}).items()}
    latest = {name: value for name, value in shown.items() if name not in (SOURCE, METRICS)}
    return {**source, "description": shown[SOURCE], "latestOffset": latest, "metrics": metrics}
