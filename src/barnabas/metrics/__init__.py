"""Metrics as plain objects: histograms, rates, and the registry of families. Nothing here knows Kafka, a clock or a network."""
