"""The metadata store on a ZooKeeper ensemble: a client of its protocol on the broker's own event loop.

`address` parses connection strings, `wire` encodes the protocol, `access` gives the ACLs of a node, `watch_list` tracks the watches of a
session, `digest_md5` proves a password, `session` keeps one session alive over lost connections, `tree` opens sessions. Why not a library:
see ARCHITECTURE.md.
"""
