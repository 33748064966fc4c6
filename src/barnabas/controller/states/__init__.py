"""The state machines of partitions and replicas, and the requests that follow from them."""
