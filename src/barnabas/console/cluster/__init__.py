"""The state of a cluster: a session with the rights of one user, its samples and their history."""
