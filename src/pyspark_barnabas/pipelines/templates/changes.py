"""Turn a topic of changes (inserted, changed and deleted rows) into a table that holds the newest row of each key."""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

from pyspark_barnabas.pipelines.change_capture import Changes, declare
from pyspark_barnabas.pipelines.topics import Source

spark = SparkSession.active()
# From spark-pipeline.yml: the brokers, and the group id under which Kafka's tools show the progress of this pipeline.
SERVERS = str(spark.conf.get("spark.barnabas.servers"))
GROUP = str(spark.conf.get("spark.barnabas.group"))

# A value is the whole new row as JSON: {"id": "7", "name": "Ann", "city": "Ulm"}; a record without a value deletes the row of its key.
# With debezium=True values are Debezium's envelopes instead.
CHANGES = Changes(schema="id string, name string, city string", keys=["id"])
# A format that can be changed in place, "delta" or "iceberg", where Spark has one: then Spark's AutoCDC merges each change into the table.
TABLE_FORMAT = ""


def changes() -> DataFrame:
    return CHANGES.rows(CHANGES.source(Source(SERVERS, "customers", options={"groupIdPrefix": GROUP})).stream(spark))


if TABLE_FORMAT:
    dp.temporary_view(name="customer_changes")(changes)
    declare("customers", "customer_changes", CHANGES, format=TABLE_FORMAT)
else:
    # Each change is read once and kept, also after the topic has deleted it; every run builds the table from all changes.
    dp.table(name="customer_changes")(changes)

    @dp.materialized_view
    def customers() -> DataFrame:
        return CHANGES.newest(spark.read.table("customer_changes"))
