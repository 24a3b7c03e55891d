"""Experiments on a live cluster: create workloads, measure what happens to them, report, compare.

    file/        what an experiment file may say: models and rules
    plan/        turns an experiment file into the objects to create, and when: pure functions
    cluster/     everything else that is asked of the cluster: its kinds, its processes, a namespace, creating objects
    measure/     turns what the watches report into numbers: pure, except for the watching itself
    run/         one repetition from its start to its end: arrivals, the timeline, when it is over
    report/      files: report.json, plots, JUnit, the index of runs, comparisons, the history page
    running.py   a whole run: its repetitions and its report
    federation/  runs on clusters that work as one
    sweep/, ab/  an experiment for every combination of what a file lists; two against each other
    traces/      published traces, imported as a stack file and an experiment file
    policies/    policies in Python; offline/ places traces by them without a cluster, extender/ alongside a scheduler

Times and durations are seconds; `now` and `clock` count them from the run's start. `limit` is how many a call of a
policy may take, `product_label` the node label that says which GPUs a node has, and `say` takes a line for the user.
Docstrings name these only where there is more to say of them.

Used by `kumulus experiment`, `trace` and `policy`. docs/experiments.md says what is measured and how.
"""
