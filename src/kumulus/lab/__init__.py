"""Experiments on a live cluster: create workloads, measure what happens to them, report, compare.

    plan/     an experiment file becomes the very objects to create, and when: pure functions
    cluster/  what is asked of the cluster besides: nodes, processes, counters, a namespace of its own
    measure/  from what the watches report to numbers: pure, but for the watching itself
    run/      one run from its start to its end: creating, the timeline, when it is over
    report/   files: report.json, plots, JUnit, the index of runs, comparisons, the history page

Used by `kumulus experiment`. docs/experiments.md says what is measured and how.
"""
