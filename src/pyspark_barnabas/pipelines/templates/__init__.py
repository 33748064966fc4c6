"""What `barnabas pipeline new` makes projects of: each file here is the definitions of one, ready to run and to be changed.

They are meant to be loaded by Spark Declarative Pipelines and by nobody else. The first line of a file says what it is for.
"""
