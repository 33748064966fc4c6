"""Puts the error message of a failed query before its traceback.

Spark shows the text that a Python worker prints for an exception, which begins with the traceback: a user would scroll through a page to
find the message. With SPARK_HIDE_TRACEBACK Spark omits the traceback; the exception then has it as a note, which Python prints after the
message. A worker ends with the exception, so that nothing else is affected.
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
    """A context or decorator for every method that Spark calls: exceptions are shown with their message first."""
    try:
        yield
    except Exception as error:
        if is_spark_worker() and not os.environ.get(HIDE_TRACEBACK):
            os.environ[HIDE_TRACEBACK] = "1"
            error.add_note("\n" + "".join(traceback.format_exception(error)).rstrip())
        raise


def is_spark_worker() -> bool:
    """Whether this process is a Python worker of Spark, which reports exceptions to Spark."""
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    return main is not None and main.name.startswith(_WORKERS)
