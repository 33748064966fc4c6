"""Streams into topics exactly once: one open transaction per task, and a log in which the driver decides about all of them at once.

`records` and `decision_log` are what is written and what it means; `steps` is who does what in which order; `transactions`, `log_client`
and `runner` do it on a broker; `stream_writer` is what Spark calls.
"""
