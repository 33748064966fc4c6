"""The state machines of partitions and replicas, topic deletion, and the control requests that follow from them."""
