"""Whether a problem is one: not solved at its beginning, and solved by its recorded solution."""

from kumulus.gym.environment import Environment
from kumulus.gym.problem_file import GymError

_UNSOLVED_S = 0.5


def check(environment: Environment, seed: int) -> str:
    """What is wrong with a problem with a seed, in words; empty if nothing is."""
    try:
        environment.reset(seed)
    except GymError as error:
        return str(error)
    if environment.verify(_UNSOLVED_S).solved:
        return "it solves itself"
    total, done, said = 0.0, False, ""
    for command in environment.drawn.solution:
        if done:
            break
        observation, reward, done = environment.step(command)
        total += reward
        said += f"\n$ {command}\n{observation.text}"
    verdict = environment.verify()
    if not verdict.solved:
        return f"its solution does not solve it:\n{verdict}{said}"
    return "" if total > 0 else f"its solution brings a reward of {total:g}"
