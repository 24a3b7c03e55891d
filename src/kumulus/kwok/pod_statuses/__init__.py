"""All statuses of pods, as Go templates of YAML that KWOK fills in.

`fragments` has the pieces, `base` the statuses of any pod, `lifecycle` those of a lifecycle, `fault` those of a fault,
and `followed` that of a pod whose spec has changed.
"""
