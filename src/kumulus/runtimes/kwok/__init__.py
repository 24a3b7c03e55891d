"""The default runtime: etcd, the Kubernetes control plane and kwok-controller as local processes, by ``kwokctl``."""
