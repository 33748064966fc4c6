"""What `barnabas TOOL` adds to Kafka's tools: a default cluster, suggestions, completion."""
