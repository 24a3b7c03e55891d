"""Feed the readers of stack files, KEMU files, experiments and kubeconfigs damaged and hostile texts.

``python -m tests.support.fuzz KIND SEED SECONDS NOTE``: each text depends only on the seed and its number. NOTE holds
the current text, so that a text that crashes or hangs the process is known. Texts that broke a promise are printed.
"""

import json
import random
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path

import yaml

from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.file.load import load as load_experiment
from kumulus.kube import KubeconfigError
from kumulus.kube.config import read_kubeconfig
from kumulus.model.errors import SpecError
from kumulus.stackfile.load import load
from kumulus.stackfile.yamltext import read_yaml

ROOT = Path(__file__).resolve().parents[2]
MOST_S, MOST_MEMORY = 2.0, 200 << 20
KINDS = ("stack", "kemu", "experiment", "kubeconfig")
_KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: a
clusters: [{name: a, cluster: {server: "https://127.0.0.1:6443", certificate-authority-data: LS0t, tls-server-name: b}}]
users:
- name: a
  user: {token: t, as: b, as-groups: [c], exec: {apiVersion: client.authentication.k8s.io/v1, command: x, env: []}}
contexts: [{name: a, context: {cluster: a, user: a, namespace: n}}]
"""
_KEMU = """\
apiVersion: kemu.datastrophic.io/v1alpha1
kind: ClusterConfig
spec:
  nodeGroups:
    - name: g
      placement: [{availabilityZone: z, replicas: 3}]
      nodeTemplate: {metadata: {labels: {a: b}}, capacity: {cpu: 4, memory: 16Gi, pods: "110"}}
"""
_BOMB = "[&a [x,x,x,x,x,x,x,x,x]" + "".join(f", &{chr(98 + n)} [{','.join([f'*{chr(97 + n)}'] * 9)}]" for n in range(9))


def _size(draw: random.Random, most: int) -> int:
    """Mostly small; occasionally the maximum, which takes longer."""
    return most if draw.random() < 0.05 else draw.choice((1, 2, 3, 40, 200))


# What breaks readers: depth, aliases, merges, tags, invalid characters, endless numbers, duplicate keys.
_HOSTILE: tuple[Callable[[random.Random], str], ...] = (
    lambda draw: draw.choice("[{") * _size(draw, 400_000),
    lambda draw: _BOMB + "]" * draw.randrange(2),
    lambda draw: draw.choice(("&a ", "*a", "<<: *a\n", "&a [*a]", "? ", "- " * 3000, "!!python/object:os.system ")),
    lambda draw: draw.choice(("\0", "\u202e", "\u2066", "\ufeff", "\x1b[2J", "\r", "\x85", "\ud800", "\u2028", "\t")),
    lambda draw: draw.choice(("9", "-", "1e", "0x", "0b", "1_", ".", "1:")) * _size(draw, 200_000),
    lambda draw: draw.choice(("%YAML 9.9\n---\n", "---\n", "...\n", "%TAG ! !\n", "|\n", ">-\n", "'", '"', "#")),
    lambda draw: draw.choice(("nan", ".inf", "~", "null", "{}", "[]", "true", "2026-11-22", "!!binary x", "1e400")),
    lambda draw: "".join(f"{' ' * n}a:\n" for n in range(_size(draw, 2_000))),
    lambda draw: draw.choice(
        ("(a+)+$", "a" * 70, "../" * 40, "oci://", "http://[", "%s%n", "{{.}}", "$(id)", "é" * 99)
    ),
)


def main(kind: str, seed: str, seconds: float, note: Path) -> int:
    """Feed one kind of reader for this many seconds; prints `{"texts": N, "accepted": N, "broken": [...]}`."""
    # A reader that exceeds its limits is killed, and the text is in the note.
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
    good, scratch = sources(kind), note.with_suffix(".yaml")
    number, accepted, broken = 0, 0, []
    for text in good:
        assert attempt(kind, text, scratch) == "", f"a good text of {kind} is refused"
    # CPU time, so that a busy machine reads as many texts.
    end = time.process_time() + seconds
    while time.process_time() < end:
        text = damaged(random.Random(f"{seed}:{kind}:{number}"), good)
        note.write_bytes(f"{kind} {seed}:{number}\n".encode() + text.encode(errors="surrogatepass"))
        resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time()) + 20, resource.RLIM_INFINITY))
        before, started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
        wrong = ""
        try:
            said = attempt(kind, text, scratch)
            accepted += said == ""
            wrong = misspoken(said)
        except Exception as error:
            wrong = f"{type(error).__name__}: {error}"[:300]
        took, grown = time.process_time() - started, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        if took > MOST_S:
            wrong = f"{took:.1f} s of CPU time"
        if grown << 10 > MOST_MEMORY:
            wrong = f"{grown >> 10} MiB"
        if wrong:
            broken.append({"number": number, "wrong": wrong, "text": text[:300]})
        number += 1
    print(json.dumps({"texts": number, "accepted": accepted, "broken": broken}))
    return 0


def sources(kind: str) -> list[str]:
    """Good texts of a kind."""
    if kind == "stack":
        files = [ROOT / "stacks" / f"Pulumi.{name}.yaml" for name in ("quickstart", "platform", "racks", "gpu-lab")]
        return [yaml.safe_dump(yaml.safe_load(each.read_text())["config"]["kumulus:cluster"]) for each in files]
    if kind == "experiment":
        return [(ROOT / "experiments" / f"{name}.yaml").read_text() for name in ("quickstart", "volcano-gangs")]
    return [_KEMU] if kind == "kemu" else [_KUBECONFIG]


def damaged(draw: random.Random, good: list[str]) -> str:
    """One of the texts, damaged up to eight times."""
    text = draw.choice(good)
    for _ in range(draw.randint(1, 8)):
        begin = draw.randrange(len(text) + 1)
        end = min(len(text), begin + draw.choice((0, 1, 5, 40, 400)))
        way = draw.randrange(5)
        if way < 3:
            text = text[:begin] + draw.choice(_HOSTILE)(draw) + text[end:]
        elif way == 3:
            text = text[:begin] + text[end:]
        else:
            text = text[:begin] + text[begin:end] * _size(draw, 1_000) + text[end:]
        if len(text) > 6 << 20:
            break
    return text


def attempt(kind: str, text: str, scratch: Path) -> str:
    """Read a text as the product does; returns the error message, empty when the text was accepted."""
    try:
        if kind == "stack":
            load({"cluster": read_yaml(text)}, "dev", ROOT)
            return ""
        scratch.write_text(text, errors="surrogatepass", newline="")
        if kind == "kubeconfig":
            read_kubeconfig(scratch)
        elif kind == "kemu":
            load({"clusterConfig": str(scratch)}, "dev", scratch.parent)
        else:
            load_experiment(scratch)
    except (SpecError, KubeconfigError, LabError) as error:
        return str(error) or "an error without a word"
    return ""


def misspoken(said: str) -> str:
    """What is wrong with a message."""
    if not all(line.isprintable() for line in said.splitlines()):
        return f"not printable: {said[:300]!r}"
    if "Traceback" in said or said == "an error without a word":
        return said[:300]
    # There may be any number of lines, one for each mistake.
    longest = max(map(len, said.splitlines()), default=0)
    return f"a line of {longest} characters" if longest > 2_000 else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], float(sys.argv[3]), Path(sys.argv[4])))
