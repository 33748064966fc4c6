"""Sends metrics out at intervals, without a scrape: to classes of metric.reporters, and by OTLP."""
