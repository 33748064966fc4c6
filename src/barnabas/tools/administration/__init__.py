"""Parts of the administrative tools: health, groups, quotas, reassignments, features."""
