"""Experiments on a live cluster: create workloads, measure what happens to them, report, compare.

    file/        what an experiment file may say: models and rules
    plan/        turns an experiment file into the objects to create, and when: pure functions
    cluster/     everything else that is asked of the cluster: nodes, processes, counters, a namespace of its own
    measure/     turns what the watches report into numbers: pure, except for the watching itself
    run/         one run from its start to its end: creating, the timeline, when it is over
    report/      files: report.json, plots, JUnit, the index of runs, comparisons, the history page
    federation/  runs on clusters that work as one
    sweep/       an experiment for every combination of what a file lists
    traces/      published traces, imported as a stack file and an experiment file
    policies/    policies in Python; offline/ places traces by them without a cluster, extender/ beside a scheduler

Used by `kumulus experiment`, `trace` and `policy`. docs/experiments.md says what is measured and how.
"""
