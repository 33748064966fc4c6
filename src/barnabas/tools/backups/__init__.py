"""Copies of running brokers: the cut, the files, the manifest, the tree of ZooKeeper."""
