"""What administers a cluster, as plain logic of tools and console: health, offset resets, moves of replicas. It sends nothing."""
