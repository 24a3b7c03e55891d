"""A user's own cluster as files: what a scheduler sees of it, and a clone of it.

    kinds.py      which kinds are read, by which requests, and the ClusterRole that allows them
    grammar.py    what is kept of a value and what each kept text is; reducing and renaming follow from it
    devices.py    slices and classes of devices and claims of them, of any version of their API
    cel.py        the CEL expressions of DeviceClasses, with names replaced
    fields.py     what is kept of each kind, in that grammar
    known_keys.py keys that mean the same in every cluster, and are not renamed
    messages.py   fields of API servers' protobuf, as data
    json_form.py  how JSON differs from those fields
    encoded.py    objects as API servers store them, converted to JSON values
    live.py       reading a cluster: pages, at a rate, resumable
    dumps.py      reading files: untrusted YAML and JSON, streamed and bounded
    reading.py    one object, reduced to what a capture keeps of it
    etcd/         reading a snapshot of etcd
    spool.py      what has been read so far, so that an interrupted capture resumes
    groups.py     from nodes to the node groups of a stack file: pure; regrouping.py keeps their names
    workload.py   from pods to the documents of a workload file, and back: pure
    words.py      replacing names by words, and back; wordlist.py has the words
    writing.py    the files of a capture; archive.py makes one file of them
    definitions.py  kinds of Kueue and Volcano, without either
    putting.py    creating the objects of a workload file in a cluster
    claims.py     giving claims the devices that they have at the source
    mark.py       which capture a cluster is the clone of
    following.py  keeping a clone up to date
    probe.py      what should fit: the pods of a manifest
    dry.py        pods and nodes that are created to see the scheduler's decisions, and removed again
    verdict.py    what those decisions are, in the scheduler's own messages
    quotas.py     quotas that do not admit pods; raising.py raises them in a clone
    fit.py        whether a workload fits, and which change would make all pods fit
    day/          a recorded day of a cluster

Used by `kumulus capture`, `clone`, `fit` and `translate`; docs/your-cluster.md says what they are for.
"""
