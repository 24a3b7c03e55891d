"""Another port in what kwokctl saved: in addresses, flags and numbers of ports, and nowhere else."""

from __future__ import annotations

from kumulus.runtimes.kwok.moving import moved


def test_a_port_is_another_wherever_it_is_one_and_other_numbers_stay() -> None:
    settings = {
        "options": {"etcdPort": 20001, "kwokControllerPort": 20002, "nodeLeaseParallelism": 20001},
        "components": [
            {"name": "etcd", "args": ["--listen-client-urls=https://127.0.0.1:20001", "--quota-backend-bytes=20001"]},
            {
                "name": "kube-apiserver",
                "args": ["--etcd-servers=https://127.0.0.1:20001", "--kubelet-port=20002", "--max-requests=20002"],
                "ports": [{"name": "https", "port": 20003}, {"name": "http", "port": 20002, "hostPort": 20002}],
                "envs": [{"name": "A", "value": "https://127.0.0.1:20001,https://127.0.0.1:200010"}],
            },
        ],
    }
    assert moved(settings, {20001: 30001, 20002: 30002}) == {
        "options": {"etcdPort": 30001, "kwokControllerPort": 30002, "nodeLeaseParallelism": 20001},
        "components": [
            {"name": "etcd", "args": ["--listen-client-urls=https://127.0.0.1:30001", "--quota-backend-bytes=20001"]},
            {
                "name": "kube-apiserver",
                "args": ["--etcd-servers=https://127.0.0.1:30001", "--kubelet-port=30002", "--max-requests=20002"],
                "ports": [{"name": "https", "port": 20003}, {"name": "http", "port": 30002, "hostPort": 30002}],
                "envs": [{"name": "A", "value": "https://127.0.0.1:30001,https://127.0.0.1:200010"}],
            },
        ],
    }
