"""Reading topics: planned on the driver, fetched and decoded by tasks."""
