"""Ready-made pipelines: functions that take a Spark session and say what to read, what to do and where to write.

    from pyspark_barnabas.pipelines import archive, replay, windows

Each can be started as a query of its own, or its transformation used in a flow of Spark Declarative Pipelines; `barnabas pipeline new`
writes projects that do the latter. Importing this package loads nothing, since Spark imports `pyspark_barnabas` in every process.
"""
