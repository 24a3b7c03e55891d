"""A certificate authority of a cluster's own, with a certificate for all of its components, by the command openssl.

kwokctl makes the same (sigs.k8s.io/kwok v0.8.0, pkg/kwokctl/pki), but only together with a whole cluster, and with RSA
keys, which take most of a second. These are of the curve P-256, and so are the signatures of service accounts' tokens.
"""

import shutil
import subprocess
from pathlib import Path

from kumulus.nodes.errors import ProviderError
from kumulus.testing.launching import PRIVATE

_CONFIGURATION = """
[req]
distinguished_name = name
[name]
[authority]
basicConstraints = critical,CA:TRUE
keyUsage = critical,keyEncipherment,digitalSignature,keyCertSign
subjectKeyIdentifier = hash
[admin]
keyUsage = critical,keyEncipherment,digitalSignature
extendedKeyUsage = anyExtendedKeyUsage,serverAuth,clientAuth
subjectAltName = DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,\
DNS:kubernetes.default.svc.cluster.local,DNS:localhost,IP:127.0.0.1,IP:::1
"""
_SETTINGS = ["-sha256", "-config", "openssl.cnf"]
_DAYS = ["-days", "3650"]
_NAMES = ("ca", "admin")


def available() -> bool:
    """Whether there is an openssl on PATH."""
    return shutil.which("openssl") is not None


def make(pki: Path) -> None:
    """Make `ca.crt`, `ca.key`, `admin.crt` and `admin.key` in a new folder."""
    pki.mkdir(mode=0o700)
    (pki / "openssl.cnf").write_text(_CONFIGURATION)
    # Kubernetes reads keys of this kind in their old form only, in which ecparam writes them.
    _run(pki, *(["ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", f"{each}.key"] for each in _NAMES))
    authority = ["-key", "ca.key", "-subj", "/CN=kwok-ca", "-extensions", "authority", "-out", "ca.crt"]
    admin = ["-key", "admin.key", "-subj", "/O=system:masters/CN=kwok-admin", "-out", "admin.csr"]
    _run(pki, ["req", "-x509", *_SETTINGS, *_DAYS, *authority], ["req", "-new", *_SETTINGS, *admin])
    by = ["-CA", "ca.crt", "-CAkey", "ca.key", "-set_serial", "2", "-extfile", "openssl.cnf", "-extensions", "admin"]
    _run(pki, ["x509", "-req", "-in", "admin.csr", "-sha256", *_DAYS, *by, "-out", "admin.crt"])
    for name in ("openssl.cnf", "admin.csr"):
        (pki / name).unlink()


def _run(pki: Path, *commands: list[str]) -> None:
    """Run openssl with each of these arguments, all at once."""
    begun = [
        subprocess.Popen(
            ["openssl", *arguments],
            cwd=pki,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            umask=PRIVATE,
        )
        for arguments in commands
    ]
    said = [process.communicate()[1].strip() for process in begun]
    if any(process.returncode for process in begun):
        raise ProviderError(f"openssl failed: {' '.join(said)[-300:]}")
