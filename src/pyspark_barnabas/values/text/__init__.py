"""Numbers, dates and times in text, as Spark and Java read them."""
