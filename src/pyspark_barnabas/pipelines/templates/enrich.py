"""Join the records of a topic with a compacted topic, and write each with what that says of it to a third, exactly once."""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

from pyspark_barnabas.pipelines.enrich import Enrichment, decoding
from pyspark_barnabas.pipelines.topics import Source, Target

spark = SparkSession.active()
# From spark-pipeline.yml: the brokers, and the group id under which Kafka's tools show the progress of this pipeline.
SERVERS = str(spark.conf.get("spark.barnabas.servers"))
GROUP = str(spark.conf.get("spark.barnabas.group"))

# Orders are JSON: {"product": "apples", "quantity": 3}. Products are JSON, too, with their names as keys: {"price": 0.3, "unit": "kg"}.
PRICED = Enrichment(schema="product string, quantity int", table_schema="price double, unit string", key="product", name="details")

dp.create_sink("priced", "barnabas", Target(SERVERS, "priced-orders", transactional_id_prefix=f"{GROUP}-priced").settings(streaming=True))


# The compacted topic is read from its beginning to its end at the start of a run.
@dp.append_flow(target="priced")
def priced_orders() -> DataFrame:
    orders = decoding(Source(SERVERS, "orders", options={"groupIdPrefix": GROUP}), PRICED.schema).stream(spark)
    products = decoding(Source(SERVERS, "products"), PRICED.table_schema).table(spark)
    return PRICED.records(PRICED.joined(orders, products))
