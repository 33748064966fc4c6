"""Ready-made pipelines: functions that take a Spark session, a source, a transformation and a target.

    from pyspark_barnabas.pipelines import archive, replay, windows

Each pipeline can be started as a query, or its transformation can be used in a flow of Spark Declarative Pipelines; `barnabas pipeline
new` writes projects of the second kind. Importing this package loads nothing, because Spark imports `pyspark_barnabas` in every process.
"""
