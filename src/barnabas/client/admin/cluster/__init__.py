"""The cluster as a whole: brokers, features, quorum, settings."""
