"""What a user reads first when a query fails: the error in one line, then its traceback.

Spark shows the text that a Python worker prints for an exception, and that begins with the traceback: a user would scroll through a page
to find what to do. Spark leaves the traceback out where SPARK_HIDE_TRACEBACK is set; the exception then carries it as a note, which Python
prints after the message. A worker ends with the exception, so nothing else in it is affected.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

HIDE_TRACEBACK: Final = "SPARK_HIDE_TRACEBACK"
_WORKERS: Final = ("pyspark.daemon", "pyspark.worker", "pyspark.sql.worker.", "pyspark.sql.streaming.")


@contextmanager
def error_first() -> Generator[None, None, None]:
    """For everything that Spark calls, as a block or as a decorator; whatever is raised in it is shown with its message first."""
    try:
        yield
    except Exception as error:
        if is_spark_worker() and not os.environ.get(HIDE_TRACEBACK):
            os.environ[HIDE_TRACEBACK] = "1"
            error.add_note("\n" + "".join(traceback.format_exception(error)).rstrip())
        raise


def is_spark_worker() -> bool:
    """Whether Spark has started this process to run Python for it, and so reports what it raises."""
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    return main is not None and main.name.startswith(_WORKERS)
