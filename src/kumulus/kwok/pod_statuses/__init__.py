"""What a pod's status says, as templates of Go and YAML that KWOK fills in: the one place that knows.

`fragments` has the pieces, `base` the statuses of any pod, `lifecycle` those of a described life, `fault` of a fault.
"""
