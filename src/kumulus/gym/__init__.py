"""Problems for agents: a cluster with something wrong, commands of kubectl, rewards, and a verdict (docs/agents.md).

Public is what can be imported from here. It is built on `kumulus.testing`; the core imports nothing from here.
"""

from kumulus.gym.conditions import Outcome, Verdict
from kumulus.gym.environment import Environment, Observation
from kumulus.gym.errors import GymError
from kumulus.gym.problem_file import Problem, problem, problems

__all__ = ["Environment", "GymError", "Observation", "Outcome", "Problem", "Verdict", "problem", "problems"]
