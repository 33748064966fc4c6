# Compiled by mypyc: src/compiled.toml lists this module.
"""An operation that waits for an event, such as replication or new data, for at most its delay.

It is made when a request cannot be answered at once, and waits in a purgatory. It completes exactly once: by its event or by its timeout.
"""

from __future__ import annotations

from mypy_extensions import mypyc_attr

from barnabas.broker.waiting.timing_wheel import TimerTask


@mypyc_attr(allow_interpreted_subclasses=True)
class DelayedOperation(TimerTask):
    """Subclasses define when it can complete (`try_complete`), what it does then (`on_complete`), and what it does after a timeout."""

    def __init__(self, delay_ms: int) -> None:
        super().__init__()
        self.delay_ms = delay_ms
        self.completed = False

    def try_complete(self) -> bool:
        """Returns `force_complete()` if the wait is over, else False. It may be called often."""
        raise NotImplementedError

    def on_complete(self) -> None:
        """Called once, on completion. It may start, check or complete other operations."""
        raise NotImplementedError

    def on_expiration(self) -> None:
        """Called after `on_complete` if the timeout completed the operation, usually to count it."""

    def force_complete(self) -> bool:
        """Completes the operation, whether its event has happened or not. True if this call completed it."""
        if self.completed:
            return False
        self.completed = True
        self.cancel()
        self.on_complete()
        return True

    def expire(self) -> bool:
        """Called at the timeout. True if it completed the operation."""
        if not self.force_complete():
            return False
        self.on_expiration()
        return True
