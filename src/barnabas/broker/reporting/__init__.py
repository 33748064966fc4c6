"""The ways out of metrics that nobody has to read: classes of metric.reporters, and the push by OTLP."""
