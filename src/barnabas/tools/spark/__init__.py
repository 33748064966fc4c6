"""Tools that run on Spark: the demo, and pipelines."""
