module kumulus.local/toolchain/jobset

go 1.26.4

require sigs.k8s.io/jobset v0.12.0
