"""Downloads: what a search finds, as JSON Lines, CSV or Parquet, with its filters and masks."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

from starlette.responses import Response

from barnabas.console.messages import parquet
from barnabas.console.messages.browse import KeyIsMasked, open_scan
from barnabas.console.messages.decoding import PARSE_BYTES_MAX
from barnabas.console.messages.export import (
    EXPORT_SHOWN_BYTES_MAX,
    FILE_FORMATS,
    RECORDS_DEFAULT,
    RECORDS_MAX,
    ExportRecord,
    FileFormat,
    export_of,
    records_of,
    write_file,
)
from barnabas.console.messages.places import DOWNLOADS, close_later
from barnabas.console.messages.query_text import QueryError, parse_query
from barnabas.console.messages.scan import Scan
from barnabas.console.pages.downloads import Download, file_name
from barnabas.console.pages.reading import masks_of, new_consumer, query_settings, registry_of
from barnabas.console.web.routes import get
from barnabas.console.web.visit import Visit
from barnabas.errors import IllegalArgument

_MEDIA_TYPES: Final[dict[FileFormat, str]] = {
    "jsonl": "application/x-ndjson",
    "csv": "text/csv; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
}


async def download(visit: Visit) -> Response:
    """A file of what the search of the address finds. It is streamed: it begins at once, and is as long as it gets."""
    topic = visit.path("name")
    file_format = next((known for known in FILE_FORMATS if known == visit.argument("format", "jsonl")), None)
    if file_format is None:
        raise IllegalArgument(f"A file is one of {', '.join(FILE_FORMATS)}")
    if file_format == "parquet" and not parquet.is_available():
        raise IllegalArgument(parquet.NOT_AVAILABLE)
    try:
        query = parse_query(topic, visit.argument, round(time.time() * 1000))
    except QueryError as fault:
        raise IllegalArgument(str(fault)) from None
    records_max = visit.number_argument("records", RECORDS_DEFAULT, 1, RECORDS_MAX)
    await DOWNLOADS.take()
    consumer = new_consumer(visit, query_settings(visit, query))

    def end() -> None:
        DOWNLOADS.free()
        close_later(consumer)

    try:
        scan = await open_scan(
            consumer,
            query,
            export_of,
            masks=masks_of(visit),
            registry=registry_of(visit),
            parse_bytes_max=PARSE_BYTES_MAX,
            shown_bytes_max=EXPORT_SHOWN_BYTES_MAX,
        )
    except KeyIsMasked as fault:
        end()
        raise IllegalArgument(str(fault)) from None
    except BaseException:
        end()
        raise
    visit.audit("download", f"Downloads up to {records_max} messages of {topic} as {file_format}")
    name = f"{file_name(topic)}.{file_format}"
    return Download(_file(scan, file_format, records_max), end, name, media_type=_MEDIA_TYPES[file_format])


async def _file(scan: Scan[ExportRecord], file_format: FileFormat, records_max: int) -> AsyncGenerator[bytes, None]:
    batches = records_of(scan, records_max)
    pieces = parquet.write_parquet(batches) if file_format == "parquet" else write_file(batches, file_format)
    async with aclosing(pieces), aclosing(batches):
        async for piece in pieces:
            yield piece


ROUTES: Final = (get("/topics/{name}/messages/download", download),)
