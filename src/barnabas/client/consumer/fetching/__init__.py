"""Fetching: from the Fetch request to the records that a poll returns."""
