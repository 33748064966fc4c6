"""The contents of Kafka's znodes: one module per family, each with values, `encode_…` to Kafka's bytes and `decode_…` from them.

The bytes are those of Kafka 3.9 in ZooKeeper mode, including the key order (`ordering`). Older versions are read, and written back in the
same version where the value records it. Where Kafka uses a set (the partitions of an ISR change or an election, the entries of an ACL) or
an unordered map (a reassignment), and so has no order, the order of the arguments is kept. The paths are in `barnabas.metadata.paths`.
Nothing here accesses a metadata store.
"""
