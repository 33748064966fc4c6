"""The embedded metadata store for the broker processes of one machine: a server of ZooKeeper's protocol on a Unix socket.

`server_wire` reads requests and writes responses, `tree_server` decides in plain objects, `unix_server` is the socket. The client is in
`metadata.zookeeper`.
"""
