"""What the console knows of a cluster: a session in the name of one person, its samples and their history."""
