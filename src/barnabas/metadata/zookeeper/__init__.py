"""The metadata tree kept by a ZooKeeper ensemble: a client of its protocol on the broker's own event loop.

`address` reads connection strings, `wire` has the bytes, `access` who may touch which node, `watch_list` what a session waits for,
`session` keeps one session alive over lost connections, `tree` opens sessions. Why not a library: see ARCHITECTURE.md.
"""
