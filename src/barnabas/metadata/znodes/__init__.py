"""What stands in Kafka's znodes: one module per family, each with values, `encode_…` to Kafka's bytes and `decode_…` from them.

The bytes are those of Kafka 3.9 in ZooKeeper mode, key order included (`ordering`); older versions are read, and written back in the form
they had where the value says which it was. What Kafka keeps in a set (the partitions of an ISR change or an election, the entries of an
access list) or in an unordered map (a reassignment) stands in the order in which it is given here, where Kafka has no order.
The paths are in `barnabas.metadata.paths`. Nothing here touches a tree.
"""
