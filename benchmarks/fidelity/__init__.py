"""The ledger of docs/fidelity.md: what differs between emulated nodes and real kubelets."""
