"""Fetching: from the request for records to what a poll returns."""
