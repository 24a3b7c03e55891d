"""What a run asks of the cluster besides its workloads: nodes, processes, counters, a namespace, the API's kinds."""
