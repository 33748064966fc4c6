"""The metadata tree, embedded or ZooKeeper's, as tools read it."""
