"""The pages of topics: the list, one topic with its tabs, and moves of its replicas."""
