"""An agent's commands: what is run as kubectl, and what is refused, with what to do instead."""

from pathlib import Path

import pytest
import yaml

from kumulus.gym import kubectl
from kumulus.gym.kubectl import parsed


@pytest.mark.parametrize(
    "command",
    [
        "kubectl get pods -A -o wide",
        "kubectl -n shop get pods",
        "kubectl --namespace=shop describe pod web",
        "kubectl logs -p web -c main",
        "kubectl get pods -ojsonpath={.items[*].spec.containers[*].file}",
        "kubectl get nodes -o custom-columns=N:.metadata.name,F:.spec.file",
        "kubectl patch deployment web --subresource scale -p '{}'",
        "kubectl get pod web --subresource=status",
        "kubectl get --raw /api/v1/nodes",
        "kubectl create job once --image=none -- sh -c 'echo a | wc; exit 3'",
    ],
)
def test_commands_of_kubectl_are_run(command: str) -> None:
    assert parsed(command).refused == ""


@pytest.mark.parametrize(
    ("command", "refused"),
    [
        ("", "no command of kubectl"),
        ("rm -rf /", "no command of kubectl"),
        ("kubectl", "kubectl nothing is not offered here; write one of annotate, "),
        ("kubectl exec web -- sh", "kubectl exec is not offered here"),
        ("kubectl -n get cp web:/a /b", "kubectl cp is not offered here"),
        ("kubectl --kubeconfig=/a get pods", "kubectl --kubeconfig=/a is not offered here"),
        ("kubectl get pods | wc -l", "no shell that knows |; write one command"),
        ("kubectl get pods && kubectl get nodes", "no shell that knows &&"),
        ("kubectl get pods 'a", "cannot be read: No closing quotation; close every quote"),
        ("kubectl apply -f /etc/passwd", "-f is not offered here; give a manifest itself"),
        ("kubectl apply -Rf /etc", "-f is not offered here"),
        ("kubectl apply -f- -f /etc/passwd", "-f is not offered here"),
        ("kubectl apply --filename /etc/passwd", "--filename is not offered here"),
        ("kubectl get pods -Ak /etc", "-k is not offered here; leave it out"),
        ("kubectl get -n -- -f /etc/passwd", "-f is not offered here"),
        ("kubectl create configmap a --from-file=/etc/passwd", "--from-file is not offered here; leave it out"),
        ("kubectl create configmap a --from_file=/etc/passwd", "--from-file is not offered here"),
        ("kubectl get pods -s https://example.com", "-s is not offered here"),
        ("kubectl get pods --context kind", "--context is not offered here"),
        ("kubectl get pods -o jsonpath-file=/etc/passwd", "--output=jsonpath-file reads a file of this machine"),
        ("kubectl get pods --output=templatefile --template /etc/passwd", "--output=templatefile reads a file"),
        ("kubectl get pods -Aogo-template-file=/etc/passwd", "--output=go-template-file reads a file"),
        ("kubectl patch pod web --subresource=status -p '{}'", "a status is written by controllers only"),
        ("kubectl patch pod web --subresource status -p '{}'", "a status is written by controllers only"),
        ("kubectl replace --raw /api/v1/nodes/a/status -f -", "--raw is for kubectl get only"),
    ],
)
def test_what_reaches_beyond_the_cluster_is_refused_with_a_remedy(command: str, refused: str) -> None:
    assert refused in parsed(command).refused
    assert "; " in parsed(command).refused


def test_a_here_document_is_the_input_of_a_command() -> None:
    found = parsed("kubectl apply -n shop -f - <<'EOF'\nkind: Pod\nEOF")
    assert (found.words, found.text) == (("kubectl", "apply", "-n", "shop", "-f", "-"), "kind: Pod\n")
    assert not found.refused


def test_manifests_are_applied() -> None:
    found = parsed([{"kind": "A", "no": "yes"}, {"kind": "B"}])
    assert found.words == ("kubectl", "apply", "-f", "-")
    assert [*yaml.safe_load_all(found.text)] == [{"kind": "A", "no": "yes"}, {"kind": "B"}]
    assert parsed({"kind": "A"}).text == "kind: A\n"


def test_a_command_of_several_lines_is_one() -> None:
    found = parsed("kubectl patch pod web -p '{\n}'")
    assert (found.words[-1], found.refused) == ("{\n}", "")


@pytest.mark.parametrize(
    ("command", "reads"),
    [
        ("kubectl -n a get pods", True),
        ("kubectl rollout status deployment/web", True),
        ("kubectl rollout undo deployment/web", False),
        ("kubectl cordon a", False),
        ("ls", True),
    ],
)
def test_commands_that_only_read_are_known(command: str, reads: bool) -> None:
    assert parsed(command).reads_only is reads


def program(folder: Path, text: str) -> Path:
    made = folder / "kubectl"
    made.write_text(f"#!/bin/sh\n{text}\n")
    made.chmod(0o755)
    return made


def test_kubectl_has_nothing_of_the_users_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", "/mine")
    monkeypatch.setenv("TOKEN", "secret")
    asked = program(tmp_path, "/usr/bin/env; pwd; /bin/cat; exit 3")
    text, code = kubectl.run(asked, kubectl.AgentCommand(("kubectl",), "input"), tmp_path / "k.yaml", 10)
    assert code == 3
    assert {*text.splitlines()} - {"_=/usr/bin/env"} == {
        f"KUBECONFIG={tmp_path}/k.yaml", f"HOME={tmp_path}", "PATH=", f"PWD={tmp_path}", str(tmp_path), "input"
    }  # fmt: skip


def test_a_command_without_an_end_is_ended(tmp_path: Path) -> None:
    asked = program(tmp_path, "echo begun; exec /bin/sleep 600")
    text, code = kubectl.run(asked, kubectl.AgentCommand(("kubectl",)), tmp_path / "k.yaml", 0.5)
    assert (text.splitlines()[0], code) == ("begun", 124)
    assert "write one that ends by itself" in text


def test_long_output_is_cut_and_says_so(tmp_path: Path) -> None:
    asked = program(tmp_path, "/usr/bin/seq 100000")
    text, _ = kubectl.run(asked, kubectl.AgentCommand(("kubectl",)), tmp_path / "k.yaml", 10)
    assert len(text) < 17_000
    assert text.endswith("… of 588,894 characters; ask for less")


def test_a_word_that_no_program_takes_is_no_exception(tmp_path: Path) -> None:
    text, code = kubectl.run(program(tmp_path, ""), kubectl.AgentCommand(("kubectl", "a\0")), tmp_path / "k.yaml", 10)
    assert (text, code) == ("the command cannot be run: embedded null byte", 126)
