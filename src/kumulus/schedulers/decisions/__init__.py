"""Why a kube-scheduler chose the nodes that it chose, from its own log: the scores, and what refused a pod before.

`log` understands its lines, `document` is what is kept of them, and `reader` is the process that its output goes
through: of some thousand lines for a pod, one is kept.
"""
