"""A rate measured over sampled windows, as Kafka's `Rate` and `SimpleRate` do.

Values are summed in samples of one window each. A sample counts until its last value is older than all windows together. One sample more
than there are windows is kept, because the oldest may overlap the measured time. A rate takes time as an argument and reads no clock.
"""

from __future__ import annotations


class RateWindow:
    __slots__ = ("last_ms", "start_ms", "value")

    def __init__(self, monotonic_ms: int) -> None:
        self.start_ms = self.last_ms = monotonic_ms
        self.value = 0.0

    def reset(self, monotonic_ms: int) -> None:
        self.start_ms = self.last_ms = monotonic_ms
        self.value = 0.0


class SampledRate:
    """`samples` windows of `window_ms` each: quota.window.num and quota.window.size.seconds, or the settings of another quota."""

    def __init__(self, samples: int, window_ms: int) -> None:
        self.samples = samples
        self.window_ms = window_ms
        self._samples: list[RateWindow] = []
        self._current = 0

    def record(self, value: float, monotonic_ms: int) -> None:
        if not self._samples:
            self._samples.append(RateWindow(monotonic_ms))
        sample = self._samples[self._current]
        if monotonic_ms - sample.start_ms >= self.window_ms:
            sample = self._next_sample(monotonic_ms)
        sample.value += value
        sample.last_ms = monotonic_ms

    def total(self, monotonic_ms: int) -> float:
        """The sum of the values that still count."""
        self._drop_old_samples(monotonic_ms)
        return sum(sample.value for sample in self._samples)

    def rate(self, monotonic_ms: int) -> float:
        """Values a second, over at least all but one of the windows: the first values of a quiet client make no high rate."""
        return self.total(monotonic_ms) * 1000 / self.window_size_ms(monotonic_ms)

    def window_size_ms(self, monotonic_ms: int) -> int:
        """The time that `rate` is measured over."""
        elapsed_ms = self._elapsed_ms(monotonic_ms)
        missing = self.samples - 1 - elapsed_ms // self.window_ms
        return max(1, elapsed_ms + max(0, missing) * self.window_ms)

    def simple_rate(self, monotonic_ms: int) -> float:
        """Values a second since the oldest sample began, over at least one window."""
        return self.total(monotonic_ms) * 1000 / max(self._elapsed_ms(monotonic_ms), self.window_ms)

    def _next_sample(self, monotonic_ms: int) -> RateWindow:
        self._current = (self._current + 1) % (self.samples + 1)
        if self._current == len(self._samples):
            self._samples.append(RateWindow(monotonic_ms))
        else:
            self._samples[self._current].reset(monotonic_ms)
        return self._samples[self._current]

    def _elapsed_ms(self, monotonic_ms: int) -> int:
        self._drop_old_samples(monotonic_ms)
        return monotonic_ms - min((sample.start_ms for sample in self._samples), default=monotonic_ms)

    def _drop_old_samples(self, monotonic_ms: int) -> None:
        expires_ms = self.samples * self.window_ms
        for sample in self._samples:
            if monotonic_ms - sample.last_ms >= expires_ms:
                sample.reset(monotonic_ms)
