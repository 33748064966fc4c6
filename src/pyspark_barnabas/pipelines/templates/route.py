"""Clean and check the records of a topic, send each where it belongs, and what is wrong to a topic of dead letters, exactly once."""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

from pyspark_barnabas.pipelines.route import Routes
from pyspark_barnabas.pipelines.topics import Source, Target

spark = SparkSession.active()
# From spark-pipeline.yml: the brokers, and the group id under which Kafka's tools show the progress of this pipeline.
SERVERS = str(spark.conf.get("spark.barnabas.servers"))
GROUP = str(spark.conf.get("spark.barnabas.group"))

# Orders are JSON: {"product": "apples", "quantity": 3}. The first route that fits counts.
ROUTES = Routes(
    schema="product string, quantity int",
    clean={"product": "lower(trim(product))"},
    checks={"product is missing": "product is not null", "quantity is not positive": "quantity > 0"},
    routes={"large-orders": "quantity >= 100"},
    otherwise="small-orders",
    dead_letters="wrong-orders",
)

dp.create_sink("routed", "barnabas", Target(SERVERS, transactional_id_prefix=f"{GROUP}-routed").settings(streaming=True))


@dp.append_flow(target="routed")
def routed_orders() -> DataFrame:
    orders = ROUTES.source(Source(SERVERS, "orders", options={"groupIdPrefix": GROUP})).stream(spark)
    return ROUTES.routed(orders)
