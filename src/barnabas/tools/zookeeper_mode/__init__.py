"""The old way of Kafka's tools: --zookeeper, straight into the tree."""
