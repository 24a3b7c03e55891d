"""The kind runtime: a real Kubernetes cluster whose nodes are containers of Docker, Podman or nerdctl."""
