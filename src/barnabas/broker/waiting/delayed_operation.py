# Compiled by mypyc: src/compiled.toml lists this module.
"""An answer that waits: for replicas, for data, for members of a group, and never longer than its delay.

A handler makes one when it cannot answer at once and gives it to a purgatory. It is completed exactly once, by whoever comes first: the
event it waits for, or its timeout.
"""

from __future__ import annotations

from mypy_extensions import mypyc_attr

from barnabas.broker.waiting.timing_wheel import TimerTask


@mypyc_attr(allow_interpreted_subclasses=True)
class DelayedOperation(TimerTask):
    """Subclasses say when it can be completed (`try_complete`), what to do then (`on_complete`), and what else if it was too late."""

    def __init__(self, delay_ms: int) -> None:
        super().__init__()
        self.delay_ms = delay_ms
        self.completed = False

    def try_complete(self) -> bool:
        """Looks whether the wait is over and if so returns `force_complete()`; otherwise False. It may be asked often."""
        raise NotImplementedError

    def on_complete(self) -> None:
        """The answer. It is called once, and may start, check or complete other operations."""
        raise NotImplementedError

    def on_expiration(self) -> None:
        """Called after `on_complete` if it was the timeout that completed the operation; counts it, as a rule."""

    def force_complete(self) -> bool:
        """Completes the operation, ready or not; True for the caller that did it, False for all after."""
        if self.completed:
            return False
        self.completed = True
        self.cancel()
        self.on_complete()
        return True

    def expire(self) -> bool:
        """The timeout has come."""
        if not self.force_complete():
            return False
        self.on_expiration()
        return True
