"""The plugin, in an environment that Pulumi's engine makes from requirements.txt next to it."""

import runpy

runpy.run_module("kumulus.provider.plugin", run_name="__main__")
