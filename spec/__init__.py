"""What a stack file may say: its models, its checks, and what it comes to in nodes.

This package imports nothing else of the project: no Pulumi, no Kubernetes client. Two halves live here:

- plain Python, cheap to import, shared with the provider plugin, whose start-up every command waits for: `errors`,
  `quantity`, `names`, `checks`, `gfd`, `topology`, `pools`, `hypernodes`, `nodes`, `totals`, `consequences`,
  `node_effects`, `pod_effects`, `active_faults`, `node_delta`, `durations`, `observability`;
- pydantic models and reading, needed once per run by the program: `fields`, `addons`, `groups`, `group_topology`,
  `instances`, `shapes`, `model`, `validation`, `rules`, `expand`, `yamltext`, `kemu`, `load`,
  `faults`, `fault_catalog`, `fault_targets`.

The first half never imports the second, and this file imports neither.
"""
