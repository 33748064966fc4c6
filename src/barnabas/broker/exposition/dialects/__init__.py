"""Names for the metrics of a broker that other exporters and brokers use, chosen by metrics.dialects."""
