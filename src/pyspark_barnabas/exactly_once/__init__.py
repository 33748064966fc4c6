"""Streams into topics exactly once: one open transaction per task, and a log in which the driver decides about all of them at once.

`records` and `decision_log` define the log and its meaning; `steps` is the protocol of tasks and driver; `transactions`, `log_client` and
`runner` carry it out on a broker; Spark calls `stream_writer`.
"""
