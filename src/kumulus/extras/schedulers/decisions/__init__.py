"""Why a kube-scheduler chose its nodes, from its own log: the scores, and earlier reasons for not placing a pod.

`log` parses its lines, `document` is the format in which decisions are kept, and `reader` is the process that the
output is piped through: of some thousand lines for a pod, it keeps one.
"""
