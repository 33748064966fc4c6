"""From the options of a tool to a client of the cluster."""
