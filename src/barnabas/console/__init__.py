"""The console: the web page of a cluster, in a process of its own."""
