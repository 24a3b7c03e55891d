"""What a stack file may say: its models, its checks, and what it comes to in nodes.

This package imports nothing else of the project: no Pulumi, no Kubernetes client. Two halves live here:

- plain Python, cheap to import, shared with the provider plugin, whose start-up every command waits for: `errors`,
  `quantity`, `names`, `checks`, `pools`, `nodes`, `totals`, `consequences`;
- pydantic models and reading, needed once per run by the program: `fields`, `addons`, `groups`, `model`,
  `validation`, `rules`, `expand`, `yamltext`, `kemu`, `load`.

The first half never imports the second, and this file imports neither.
"""
