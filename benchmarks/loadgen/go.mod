module kumulus.local/benchmarks/loadgen

go 1.26
