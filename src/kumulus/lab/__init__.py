"""Experiments on a live cluster: create workloads, measure what happens to them, report, compare.

    plan/     turns an experiment file into the objects to create, and when: pure functions
    cluster/  everything else that is asked of the cluster: nodes, processes, counters, a namespace of its own
    measure/  turns what the watches report into numbers: pure, except for the watching itself
    run/      one run from its start to its end: creating, the timeline, when it is over
    report/   files: report.json, plots, JUnit, the index of runs, comparisons, the history page

Used by `kumulus experiment`. docs/experiments.md says what is measured and how.
"""
