"""Made-up reports of runs, for tests of code that reads reports."""

from typing import Any

from kumulus.extras.lab.report.model import (
    Details,
    Inputs,
    Judged,
    Machine,
    Metadata,
    Report,
    ReportedCluster,
    Results,
    SchedulerUsed,
    Status,
    Test,
)


def report(run: str = "20261121-150000-abc123", **fields: Any) -> Report:
    """A report.

    Args:
        fields: ``measures`` (of each repetition), ``status``, ``error``, ``judged`` (what was expected, whether it
            holds, what was found), and any field of the metadata, ``scheduler`` by its name.
    """
    repetitions: list[dict[str, float]] = fields.pop("measures", [{"timeToSchedule.p99": 1.25, "duration": 9.0}])
    status: Status = fields.pop("status", "success")
    judged = [Judged(expected=what, holds=holds, found=found) for what, holds, found in fields.pop("judged", [])]
    results = Results(status=status, error=fields.pop("error", ""), tests=[])
    series = {"t": [0.0, 1.0], "created": [0, 8], "bound": [0, 8], "gpus a100 z1": [0, 64], "gpu capacity": [64, 64]}
    for number, measures in enumerate(repetitions, start=1):
        details = Details(
            ended="all pods are scheduled",
            measures=measures,
            allocation={"a100 z1": 64},
            free_gpus={},
            jobs={},
            pending_by_reason={},
            timeline=[],
            bindings=[],
            series={**series, "cpu kube-scheduler": [0.0, 0.4]},
        )
        test = Test(id=f"{run}-{number}", test_name="fill", status=status, thresholds=judged, details=details)
        results.tests.append(test)
    name, settings = fields.pop("scheduler", "default"), fields.pop("settings", {"kube-api-qps": "5000"})
    metadata: dict[str, Any] = {
        "run_id": run,
        "experiment": "fill",
        "description": "",
        "source": "",
        "expected": "",
        "emulation": "",
        "timestamp": f"{run[:4]}-{run[4:6]}-{run[6:8]}T{run[9:11]}:{run[11:13]}:{run[13:15]}Z",
        "kumulus_commit": "0123456789ab",
        "stack": "quickstart",
        "seed": 1,
        "repetitions": len(repetitions),
        "cluster": ReportedCluster(name="quickstart", version="v1.35.4", nodes=30, gpus={"a100 z1": 64}, local=True),
        "scheduler": SchedulerUsed(name=name, settings=settings),
        "client_settings": {},
        "creator": {},
        "machine": Machine(cores=2, memory_bytes=24 * 10**9, load=0.5),
        "inputs": Inputs(files={}, workloads="0" * 64),
        **fields,
    }
    return Report(metadata=Metadata(**metadata), results=results)
