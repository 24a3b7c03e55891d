"""``python -m kumulus.lab.file.published``: write the schemas and the reference pages into docs/; a test checks them.

It is here rather than in `kumulus.stackfile`, because this package knows the models of both files.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from kumulus.lab.file.schema import experiment_schema
from kumulus.stackfile.schema.page import markdown
from kumulus.stackfile.schema.stack import stack_schema

DOCS = Path(__file__).resolve().parents[4] / "docs"
_SCHEMAS: Mapping[str, Callable[[], dict[str, Any]]] = {"stack": stack_schema, "experiment": experiment_schema}
_INTRODUCTIONS = {
    "stack": """\
# Every field of a stack file

A stack file, `stacks/Pulumi.<stack>.yaml`, is Pulumi's: its `config` has keys of several namespaces. Those of Kumulus
are below; a key without a value counts as absent, and whatever is a text may be a secret
(`pulumi config set --secret --path`). Made from the models by `kumulus schema stack --reference`; the same as a JSON
schema, for editors: [stack.schema.json](../schema/stack.schema.json), by `kumulus schema stack`.

In an editor with a YAML language server, the first line of a stack file names the schema:

```yaml
# yaml-language-server: $schema=../docs/schema/stack.schema.json
```
""",
    "experiment": """\
# Every field of an experiment file

How an experiment is run and measured is in [Experiments](../experiments.md). A key without a value counts as
absent. Made from the models by `kumulus schema experiment --reference`; the same as a JSON schema, for editors:
[experiment.schema.json](../schema/experiment.schema.json), by `kumulus schema experiment`.

In an editor with a YAML language server, the first line of an experiment file names the schema:

```yaml
# yaml-language-server: $schema=../docs/schema/experiment.schema.json
```
""",
}


def schema_text(file: str) -> str:
    """The JSON schema of a file, `stack` or `experiment`, as a text."""
    return json.dumps(_SCHEMAS[file](), indent=2, ensure_ascii=False) + "\n"


def page(file: str) -> str:
    """The reference page of a file, `stack` or `experiment`, in Markdown."""
    return f"{_INTRODUCTIONS[file]}\n{markdown(_SCHEMAS[file]())}"


def published() -> dict[Path, str]:
    """Every file that is made here, with its text."""
    return {
        path: text
        for file in _SCHEMAS
        for path, text in (
            (DOCS / "schema" / f"{file}.schema.json", schema_text(file)),
            (DOCS / "reference" / f"{file}-file.md", page(file)),
        )
    }


if __name__ == "__main__":
    for target, content in published().items():
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content, encoding="utf-8")
