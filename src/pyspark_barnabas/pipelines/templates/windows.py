"""Count the orders of each minute by product, late ones included, and write each finished minute to a topic, exactly once."""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

from pyspark_barnabas.pipelines.topics import Source, Target
from pyspark_barnabas.pipelines.windows import Windows

spark = SparkSession.active()
# From spark-pipeline.yml: the brokers, and the group id under which Kafka's tools show the progress of this pipeline.
SERVERS = str(spark.conf.get("spark.barnabas.servers"))
GROUP = str(spark.conf.get("spark.barnabas.group"))

# Orders are JSON: {"product": "apples", "quantity": 3}. Their time is that of the record.
MINUTES = Windows(
    keys={"product": "product"},
    aggregates={"orders": "count(*)", "items": "sum(quantity)"},
    size="1 minute",
    lateness="10 seconds",
    schema="product string, quantity int",
)

dp.create_sink("sales", "barnabas", Target(SERVERS, "sales", transactional_id_prefix=f"{GROUP}-sales").settings(streaming=True))


@dp.append_flow(target="sales")
def sales_by_minute() -> DataFrame:
    orders = Source(SERVERS, "orders", options={"groupIdPrefix": GROUP}).stream(spark)
    return MINUTES.records(MINUTES.aggregated(orders))
