"""HiGHS, for minimising linear and integer programmes over columns from 0 up; no other module calls it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import highspy
import numpy as np

from kumulus.extras.advise.demand import Unadvisable

Row = tuple[Mapping[int, float], float]
"""Coefficients by column, and the least that their sum may be."""
_GAP = 1e-4


@dataclass(frozen=True)
class Solved:
    """A solution."""

    values: Sequence[float]
    """Those of the columns."""
    value: float
    proven: float
    """A lower bound of the cost of any solution."""
    duals: Sequence[float]
    """Those of the rows, for a linear programme."""


def solve(
    costs: Sequence[float],
    rows: Sequence[Row],
    *,
    upper: Sequence[float] = (),
    whole: bool = False,
    seconds: float = 60.0,
) -> Solved:
    """Minimise the cost of the columns so that every row's sum reaches its minimum.

    Args:
        costs: of one unit of each column.
        upper: the maximum of each column; no limit unless given.
        seconds: how long an integer programme may take; after that, the best solution so far is used.
    """
    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("threads", 1)
    solver.setOptionValue("random_seed", 0)
    if whole:
        solver.setOptionValue("time_limit", seconds)
        solver.setOptionValue("mip_rel_gap", _GAP)
    solver.passModel(_model(costs, rows, upper, whole))
    solver.run()
    status = solver.getModelStatus()
    info = solver.getInfo()
    # HiGHS marks a feasible solution by 2 (SolutionStatus::kSolutionStatusFeasible).
    if status != highspy.HighsModelStatus.kOptimal and int(info.primal_solution_status) != 2:
        raise Unadvisable(
            f"no fleet was found: {solver.modelStatusToString(status)}\n"
            "  Let it have more types (--max-types, --types) or more time (--seconds)"
        )
    solution = solver.getSolution()
    value = float(info.objective_function_value)
    return Solved(
        list(solution.col_value), value, float(info.mip_dual_bound) if whole else value, list(solution.row_dual)
    )


def _model(costs: Sequence[float], rows: Sequence[Row], upper: Sequence[float], whole: bool) -> highspy.HighsLp:
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = len(costs), len(rows)
    lp.col_cost_ = np.array(costs, dtype=np.double)
    lp.col_lower_ = np.zeros(len(costs))
    lp.col_upper_ = np.array(upper, dtype=np.double) if upper else np.full(len(costs), highspy.kHighsInf)
    lp.row_lower_ = np.array([least for _, least in rows], dtype=np.double)
    lp.row_upper_ = np.full(len(rows), highspy.kHighsInf)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.cumsum([0, *(len(row) for row, _ in rows)])
    lp.a_matrix_.index_ = np.array([column for row, _ in rows for column in row], dtype=np.int32)
    lp.a_matrix_.value_ = np.array([much for row, _ in rows for much in row.values()], dtype=np.double)
    if whole:
        lp.integrality_ = [highspy.HighsVarType.kInteger] * len(costs)
    return lp
