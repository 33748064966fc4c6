"""The families of metrics that a broker shows, each file with those of one subject."""
