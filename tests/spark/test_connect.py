"""Through Spark Connect: a client that has no Spark in its process reads topics and writes to them by the format's name alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from barnabas.tools.spark.spark import environment
from barnabas.tools.spark.spark_home import home_settings
from tests.broker import TopicMaker
from tests.jvm import spark_environment
from tests.spark import queries
from tests.spark.topic_contents import Sent, read, send

TIMEOUT_S = 900
RECORDS = [Sent(f"k{number}", f"v{number}", 1_763_294_400_000 + number, number % 2) for number in range(40)]
CLIENT = """
import json, sys
from pyspark.sql import SparkSession
from queries import finish

servers, source, copy, streamed, checkpoint = sys.argv[1:]
spark = SparkSession.builder.remote("local[2]").config("spark.sql.shuffle.partitions", "2").getOrCreate()
brokers = {"kafka.bootstrap.servers": servers}
rows = spark.read.format("barnabas").options(**brokers, subscribe=source).load()
chosen = rows.where("partition = 1 and offset >= 5").selectExpr("cast(key as string) as key", "offset").orderBy("offset")
told = {"session": type(spark).__module__, "columns": rows.columns, "chosen": [list(row) for row in chosen.collect()]}
print(json.dumps(told), flush=True)
rows.select("key", "value").write.format("barnabas").options(**brokers, topic=copy).mode("append").save()
stream = spark.readStream.format("barnabas").options(**brokers, subscribe=source, startingOffsets="earliest").load()
sink = brokers | {"topic": streamed, "exactlyOnce": "true", "transactionalIdPrefix": streamed, "checkpointLocation": checkpoint}
finish(lambda: stream.select("key", "value").writeStream.format("barnabas").options(**sink).trigger(availableNow=True).start())
"""


@pytest.mark.timeout(TIMEOUT_S + 20)
def test_a_client_of_spark_connect_reads_and_writes(our_broker: str, our_topic: TopicMaker, tmp_path: Path) -> None:
    source, copy, streamed = our_topic("source", partitions=2), our_topic("copy"), our_topic("streamed", partitions=2)
    send(our_broker, source, RECORDS)
    (tmp_path / "client.py").write_text(CLIENT)
    (tmp_path / "queries.py").write_text(Path(queries.__file__).read_text())
    command = [sys.executable, "client.py", our_broker, source, copy, streamed, str(tmp_path / "checkpoint")]
    # Spark's own word for a server on any port that is free, instead of always the same one.
    environ = {**os.environ, **environment(), **spark_environment(), **home_settings(tmp_path / "home"), "SPARK_TESTING": "1"}
    environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    ran = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, encoding="utf-8", timeout=TIMEOUT_S)
    assert ran.returncode == 0, ran.stderr[-5000:]
    document = json.loads(ran.stdout.splitlines()[-1])
    assert document["session"] == "pyspark.sql.connect.session"
    assert document["columns"] == ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType"]
    assert document["chosen"] == [[record.key, number] for number, record in enumerate(RECORDS[1::2])][5:]
    for topic in (copy, streamed):
        assert sorted((record.key, record.value) for record in read(our_broker, topic)) == sorted(
            (record.key, record.value) for record in RECORDS
        )
