"""Topic to topic through Spark, exactly once, while drivers, executors, Python workers and brokers are killed."""
