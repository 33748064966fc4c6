"""Records as text: the formatters of the console consumer, and what kafka-dump-log prints."""
