"""Adoption of log directories that Apache Kafka wrote."""
