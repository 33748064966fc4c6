"""HTTP requests of all kinds to the console: none is answered with 500, and none leaves an exception in the log."""
