"""Spark queries as the console shows them: what they publish to `__barnabas_queries`, and the drawing of topic, query and topic."""
