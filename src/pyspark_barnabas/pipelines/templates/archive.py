"""Keep every record of some topics in a table on disk, each with its topic and day."""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

from pyspark_barnabas.pipelines.archive import archived, source_with_headers
from pyspark_barnabas.pipelines.topics import Source

spark = SparkSession.active()
# From spark-pipeline.yml: the brokers, and the group id under which Kafka's tools show the progress of this pipeline.
SERVERS = str(spark.conf.get("spark.barnabas.servers"))
GROUP = str(spark.conf.get("spark.barnabas.group"))
TOPICS = "orders"  # several with commas between them


# A streaming table in Parquet has no partitions in Spark 4.3, even if declared; pyspark_barnabas.pipelines.archive writes one with them.
@dp.table
def archive() -> DataFrame:
    return archived(source_with_headers(Source(SERVERS, TOPICS, options={"groupIdPrefix": GROUP})).stream(spark))
