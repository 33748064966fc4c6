"""An hour of samples, bounded."""

from __future__ import annotations

from barnabas.console.cluster.history import SERIES_MAX, SERIES_POINTS_MAX, TOTALS_MAX, MetricHistory, columns


def test_an_hour_of_totals_is_kept() -> None:
    history = MetricHistory()
    for number in range(TOTALS_MAX + 10):
        history.add_total("records_in", number * 5_000, number)
    points = history.total("records_in")
    assert len(points) == TOTALS_MAX
    assert points[-1] == ((TOTALS_MAX + 9) * 5_000, TOTALS_MAX + 9)
    assert history.total("unknown") == []
    assert history.total("records_in", since_ms=points[-2][0]) == points[-2:]


def test_what_is_unknown_has_a_point_without_a_value() -> None:
    history = MetricHistory()
    history.add_total("bytes_in", 5_000, 1.5)
    history.add_total("bytes_in", 10_000, None)
    assert history.total("bytes_in") == [(5_000, 1.5), (10_000, None)]


def test_a_series_has_a_point_in_15_seconds_and_begins_when_something_happens() -> None:
    history = MetricHistory()
    for number in range(10):
        history.add_topic_rate("quiet", number * 5_000, 0)
        history.add_topic_rate("busy", number * 5_000, 7)
    assert history.topic_rate("quiet") == []
    assert [time for time, _ in history.topic_rate("busy")] == [0, 15_000, 30_000, 45_000]


def test_the_number_of_series_is_bounded_and_the_quiet_ones_go_first() -> None:
    history = MetricHistory()
    history.add_group_lag("busy", 0, 1)
    for number in range(SERIES_MAX):
        if number % 100 == 0:
            history.add_group_lag("busy", number * 15_000, 1)
        history.add_group_lag(f"group-{number}", number * 15_000, 1)
    assert history.group_lag("group-0") == []
    assert 0 < len(history.group_lag("busy")) <= SERIES_POINTS_MAX


def test_columns_join_series_by_their_times() -> None:
    assert columns([(1_000, 1.0), (2_000, 2.0)], [(2_000, 5.0)]) == [[1.0, 2.0], [1.0, 2.0], [None, 5.0]]
    assert columns([], []) == [[], [], []]
