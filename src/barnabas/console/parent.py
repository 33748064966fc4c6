"""Ends the console when the process that started it ends, also by SIGKILL: the console's standard input is a pipe that only the parent
holds open, and the system closes it with the parent."""

from __future__ import annotations

import os
import signal
import sys
import threading


def exit_with_parent() -> None:
    """Watches standard input on a thread, and stops this process by SIGTERM when it ends. A console that does not stop in five seconds
    is ended at once."""
    threading.Thread(target=_watch, args=(sys.stdin.fileno(),), name="parent-watch", daemon=True).start()


def _watch(descriptor: int) -> None:
    try:
        while os.read(descriptor, 1024):
            pass
    except OSError:
        pass
    timer = threading.Timer(5, os._exit, (1,))
    timer.daemon = True
    timer.start()
    os.kill(os.getpid(), signal.SIGTERM)
