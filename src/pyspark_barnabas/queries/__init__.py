"""What queries publish about themselves, to the compacted topic `__barnabas_queries`: docs/spark/queries.md has its schema."""
