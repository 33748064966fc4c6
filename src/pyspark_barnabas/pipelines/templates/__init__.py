"""The templates of `barnabas pipeline new`: each file is the definitions of one project, ready to run and to be changed.

Only Spark Declarative Pipelines loads them. The first line of a file is the description of the template.
"""
