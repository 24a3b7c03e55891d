"""Every port of a control plane, as docs/security.md has them: what another user, a page and a tenant get there.

That nothing else listens, whichever command runs: tests/e2e/test_listeners.py.
"""

import asyncio
import base64
import json
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from kumulus.runtimes.kwok.layout import Layout
from kumulus.runtimes.kwok.runtime import KwokRuntime
from tests.integration.conftest import NODES, PODS, Plane, plane_at, wanted
from tests.support import http_server, listeners, stranger
from tests.support.api import Api, Refused
from tests.support.browser import chromium
from tests.support.said import Said
from tests.support.stranger import Question

pytestmark = pytest.mark.integration
PAGE = "https://page.example"
CANARY = "canary-3f1c"
READABLE = {
    # Whether it lives, and which version it is: what Kubernetes lets everybody read (system:public-info-viewer).
    "kube-apiserver": ["/healthz", "/livez", "/readyz", "/version"],
    "kube-controller-manager": ["/healthz"],
    "kube-scheduler": ["/healthz", "/livez", "/readyz"],
    # kwok-controller knows no authentication: counters of its own process, where nodes' usage is, if anywhere, and a
    # log that is the same for every pod, those too that are not there.
    "kwok-controller": ["/healthz", "/metrics", "/discovery/prometheus", "/containerLogs/default/p/c"],
}
REFUSED = {
    "kube-apiserver": ["/", "/metrics", "/api/v1/pods", "/api/v1/secrets", "/openapi/v2", "/debug/pprof/", "/logs/"],
    "kube-controller-manager": ["/", "/metrics", "/configz", "/debug/pprof/", "/flagz", "/statusz"],
    "kube-scheduler": ["/", "/metrics", "/metrics/resources", "/configz", "/debug/pprof/", "/flagz", "/statusz"],
    "kwok-controller": ["/debug/pprof/", "/pods", "/exec/default/p/c", "/attach/default/p/c", "/runningpods/"],
    "etcd": ["/health", "/metrics", "/version", "/v3/kv/range"],
    "etcd (peer)": ["/members", "/raft", "/version"],
}


@pytest.fixture(scope="module")
def open_plane() -> Iterator[Plane]:
    """A control plane in a directory that everybody may enter: what keeps others out is the product's own doing."""
    folder = Path(tempfile.mkdtemp(prefix="kumulus-open-"))
    folder.chmod(0o755)
    home = folder / "home"
    home.mkdir(mode=0o755)
    try:
        with plane_at(home) as made:
            made.api.create(NODES, {"metadata": {"name": f"{CANARY}-node", "labels": {"type": "kwok"}}})
            container = {"name": "c", "image": "none"}
            spec = {"nodeName": f"{CANARY}-node", "containers": [container]}
            made.api.create(PODS, {"metadata": {"name": f"{CANARY}-pod"}, "spec": spec})
            yield made
    finally:
        shutil.rmtree(folder)


@pytest.fixture
def ports(open_plane: Plane) -> dict[str, int]:
    return Layout(open_plane.directory).ports()


def questions(ports: dict[str, int], asked: dict[str, list[str]], *headers: tuple[str, str]) -> list[Question]:
    return [Question(ports[name], path, headers=headers) for name, paths in asked.items() for path in paths]


def test_every_listener_is_one_of_the_table_and_on_this_machine_alone(open_plane: Plane, ports: dict[str, int]) -> None:
    found = listeners.of(pid for pids in open_plane.processes().values() for pid in pids)
    assert {(each.address, each.port) for each in found} == {("127.0.0.1", port) for port in ports.values()}
    assert listeners.amiss(found) == []
    assert ports.keys() == REFUSED.keys()


def test_another_user_of_the_machine_reads_health_and_versions_and_no_more(ports: dict[str, int]) -> None:
    refused = questions(ports, REFUSED)
    for asked, answer in zip(refused, stranger.ask(refused), strict=True):
        assert answer.status in (0, 400, 401, 403, 404, 405), asked
        assert CANARY not in answer.text
    plain = [each._replace(scheme="http") for each in refused if each.port != ports["kwok-controller"]]
    for asked, answer in zip(plain, stranger.ask(plain), strict=True):
        assert answer.status in (0, 400), asked
        assert CANARY not in answer.text
    allowed = questions(ports, READABLE)
    for asked, answer in zip(allowed, stranger.ask(allowed), strict=True):
        assert answer.status == 200, asked
        assert CANARY not in answer.text


def test_with_the_clusters_certificate_the_same_paths_are_answered(open_plane: Plane, ports: dict[str, int]) -> None:
    """Without this, the refusals above would also be those of a cluster that is just broken."""
    pki = open_plane.directory / "pki"
    for name in ("kube-controller-manager", "kube-scheduler"):
        command = ["curl", "-sk", "--cert", str(pki / "admin.crt"), "--key", str(pki / "admin.key"), "-o", "/dev/null"]
        url = f"https://127.0.0.1:{ports[name]}/metrics"
        done = subprocess.run([*command, "-w", "%{http_code}", url], capture_output=True, text=True, check=True)
        assert done.stdout == "200"


def test_another_user_writes_nothing(open_plane: Plane, ports: dict[str, int]) -> None:
    asked = [
        Question(ports["kube-apiserver"], f"{NODES}/{CANARY}-node", verb="DELETE"),
        Question(ports["kube-apiserver"], NODES, verb="POST"),
        Question(ports["kube-scheduler"], "/debug/flags/v", verb="PUT"),
        Question(ports["kube-controller-manager"], "/debug/flags/v", verb="PUT"),
        Question(ports["kwok-controller"], f"/exec/default/{CANARY}-pod/c?command=id", verb="POST"),
    ]
    assert [answer.status for answer in stranger.ask(asked)] == [403, 403, 403, 403, 400]
    assert open_plane.api.get(f"{NODES}/{CANARY}-node")["metadata"]["name"] == f"{CANARY}-node"


def test_no_port_lets_a_page_of_another_origin_read(ports: dict[str, int]) -> None:
    everything = {name: [*READABLE.get(name, []), *REFUSED[name]] for name in REFUSED}
    for verb in ("GET", "OPTIONS"):
        asked = [each._replace(verb=verb) for each in questions(ports, everything, ("Origin", PAGE))]
        for each, answer in zip(asked, stranger.ask(asked), strict=True):
            assert not [name for name in answer.headers if name.startswith("access-control-")], each


@pytest.mark.browser
def test_a_page_in_chromium_reads_no_port(ports: dict[str, int]) -> None:
    # Chromium would take none of the certificates: it is told to, so that it is the origin that counts.
    read = """async addresses => Promise.all(addresses.map(
        address => fetch(address).then(answer => answer.text()).catch(error => null)))"""
    asked = {name: [*READABLE.get(name, []), *REFUSED[name]] for name in REFUSED}
    addresses = [f"https://127.0.0.1:{each.port}{each.path}" for each in questions(ports, asked)]
    addresses += [f"http://127.0.0.1:{ports['kwok-controller']}{path}" for path in READABLE["kwok-controller"]]
    with page_server() as (origin, other), chromium() as browser:
        page = browser.new_context(ignore_https_errors=True).new_page()
        page.goto(origin)
        # What it can read shows that it asks at all.
        assert page.evaluate(read, [f"{origin}/own"]) == ["own"]
        assert page.evaluate(read, [f"{other}/shared"]) == ["shared"]
        assert page.evaluate(read, addresses) == [None] * len(addresses)


@contextmanager
def page_server() -> Iterator[tuple[str, str]]:
    """A page's server under two origins; of the second, /shared is for everybody."""

    class Pages(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            if self.path == "/shared":
                self.send_header("Access-Control-Allow-Origin", "*")
            self.end_headers()
            self.wfile.write(self.path.removeprefix("/").encode())

    with http_server.serving(Pages) as address:
        yield f"http://{address.replace('127.0.0.1', 'localhost')}", f"http://{address}"


def tenant(api: Api, server: str, authority: str) -> Api:
    """Somebody with all rights in a namespace, as a tenant with the role `admin` has, and its kubeconfig alone."""
    api.create("/api/v1/namespaces", {"metadata": {"name": "team"}})
    api.create("/api/v1/namespaces/team/serviceaccounts", {"metadata": {"name": "tenant"}})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "admin"}
    subject = {"kind": "ServiceAccount", "name": "tenant", "namespace": "team"}
    bindings = "/apis/rbac.authorization.k8s.io/v1/namespaces/team/rolebindings"
    api.create(bindings, {"metadata": {"name": "tenant"}, "roleRef": role, "subjects": [subject]})
    asked = {"spec": {"expirationSeconds": 3600}}
    token = api.create("/api/v1/namespaces/team/serviceaccounts/tenant/token", asked)["status"]["token"]
    cluster = {"server": server, "certificate-authority-data": authority}
    return Api(json.dumps({"clusters": [{"cluster": cluster}], "users": [{"user": {"token": token}}]}))


def test_a_tenant_gets_no_further_by_any_port_or_through_the_api_server(
    open_plane: Plane, ports: dict[str, int]
) -> None:
    authority = base64.b64encode((open_plane.directory / "pki" / "ca.crt").read_bytes()).decode()
    mine = tenant(open_plane.api, open_plane.observed.server, authority)
    token = mine._headers["Authorization"]
    assert mine.list("/api/v1/namespaces/team/pods") == []
    for path in (PODS, NODES, "/api/v1/secrets", f"{NODES}/{CANARY}-node/proxy/metrics", "/metrics", "/logs/"):
        with pytest.raises(Refused, match="403"):
            mine.get(path)
    # Its token is worth nothing at the other ports.
    others = {name: paths for name, paths in REFUSED.items() if name != "kube-apiserver"}
    for answer in stranger.ask(questions(ports, others, ("Authorization", token))):
        assert answer.status in (0, 400, 401, 403, 404, 405)
        assert CANARY not in answer.text
    # Nor does the API server, which may ask them, do so for the tenant.
    services = "/api/v1/namespaces/team/services"
    for name in ("kube-scheduler", "kwok-controller"):
        port = [{"port": ports[name]}]
        spec = {"type": "ExternalName", "externalName": "localhost", "ports": port}
        mine.create(services, {"metadata": {"name": name}, "spec": spec})
        with pytest.raises(Refused, match=r"404|503"):
            mine.get(f"{services}/https:{name}:{ports[name]}/proxy/metrics")
        subset = {"addresses": [{"ip": "127.0.0.1"}], "ports": port}
        with pytest.raises(Refused, match=r"403|422"):
            mine.create("/api/v1/namespaces/team/endpoints", {"metadata": {"name": name}, "subsets": [subset]})


def modes(directory: Path) -> dict[str, str]:
    """What others may do with a cluster's files that its folder would let them reach: nothing, in every case."""
    return {
        str(path.relative_to(directory)): stat.filemode(path.stat().st_mode)
        for path in (directory, *directory.iterdir(), *(directory / "pki").iterdir())
        if not path.is_symlink()
    }


def test_keys_and_kubeconfigs_are_private_also_after_a_reconfiguration(open_plane: Plane) -> None:
    layout = Layout(open_plane.directory)
    private = {path.relative_to(layout.directory) for path in layout.private_files()}
    assert {Path("kubeconfig.yaml"), Path("kwok.yaml"), Path("pki/admin.key"), Path("pki/ca.key")} <= private

    def looked_at() -> None:
        found = modes(layout.directory)
        assert {found[str(name)] for name in private} == {"-rw-------"}
        assert {found["."], found["pki"], found["etcd"], found["logs"]} == {"drwx------"}
        for name in private:
            assert not stranger.can_read(layout.directory / name)

    looked_at()
    # The folder is what keeps others out of it all; of the files, each keeps them out by itself.
    layout.directory.chmod(0o755)
    (layout.directory / "pki").chmod(0o755)
    try:
        for name in private:
            assert not stranger.can_read(layout.directory / name)
    finally:
        layout.directory.chmod(0o700)
        (layout.directory / "pki").chmod(0o700)
    other = wanted(Path(open_plane.wanted.home), stageObjects=True)
    asyncio.run(KwokRuntime().repair(other, open_plane.identity, Said()))
    assert "--enable-crds=Stage" in layout.kwok_file.read_text()
    looked_at()
