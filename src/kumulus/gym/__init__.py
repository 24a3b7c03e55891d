"""Problems for agents: a cluster with something wrong, commands of kubectl, rewards, and a verdict (docs/agents.md).

Public is what can be imported from here. It is built on `kumulus.testing`; the core imports nothing from here.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kumulus.gym.conditions import Outcome, Verdict
    from kumulus.gym.environment import Environment, Observation
    from kumulus.gym.problem_file import GymError, Problem, problem, problems

__all__ = ["Environment", "GymError", "Observation", "Outcome", "Problem", "Verdict", "problem", "problems"]

# Imported when asked for: every command imports this package for the extra that it brings.
_MODULES = {
    "Environment": "environment",
    "GymError": "problem_file",
    "Observation": "environment",
    "Outcome": "conditions",
    "Problem": "problem_file",
    "Verdict": "conditions",
    "problem": "problem_file",
    "problems": "problem_file",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
