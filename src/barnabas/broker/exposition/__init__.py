"""What a broker shows of itself over HTTP: its metrics in the text format of Prometheus, and its health."""
