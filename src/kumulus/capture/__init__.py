"""A cluster of the user's own as files: what a scheduler sees of it, and a clone of it.

    kinds.py      which kinds are read, by which requests, and the ClusterRole that allows them
    grammar.py    what is kept of a value and what each kept text is; reducing and renaming follow from it
    devices.py    slices and classes of devices, of any version of their API
    cel.py        the rules of DeviceClasses with their names exchanged
    fields.py     what is kept of each kind, in that grammar
    messages.py   fields of API servers' protobuf, as data
    encoded.py    what API servers store, as JSON would have it
    live.py       reading a cluster: pages, at a rate, resumable
    dumps.py      reading files: YAML and JSON of others, streamed and bounded
    etcd/         reading a snapshot of etcd
    spool.py      what has been read so far, so that an interrupted capture resumes
    groups.py     from nodes to the node groups of a stack file: pure
    workload.py   from pods to the documents of a workload file, and back: pure
    words.py      names exchanged for words, and back
    writing.py    the files of a capture
    putting.py    a workload file put into a cluster
    probe.py      what is to fit: the pods of a manifest
    dry.py        pods and nodes that are made for the scheduler to decide of, and removed again
    fit.py        will it fit, and what would let all in

Used by `kumulus capture`, `clone`, `fit` and `translate`; docs/your-cluster.md says what they are for.
"""
