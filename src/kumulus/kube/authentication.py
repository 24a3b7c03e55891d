"""How a kubeconfig's user authenticates to an API server: its token, whom it acts as, and what is refused.

As in client-go (k8s.io/client-go/tools/clientcmd and transport), an entry is honoured or refused by name, but never
silently ignored: otherwise requests would have other rights, or go another way, than the kubeconfig says.
"""

import base64
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from kumulus.kube.errors import KubeconfigError
from kumulus.kube.exec_credentials import Credential

# As in client-go: read again after a minute, less ten seconds for requests that are under way.
_GOOD_FOR_S = 50.0
_NEED_AS = ("as-uid", "as-groups", "as-user-extra")
# What RFC 7230 allows in a header's name; of the rest, quote escapes all that the API server unescapes.
_IN_HEADER_NAMES = "!#$&'*+-.^_`|~"


def refuse(cluster: Mapping[str, Any], user: Mapping[str, Any], place: str) -> None:
    """Refuse what is not supported, and what kubectl refuses as well.

    Args:
        place: the kubeconfig and its context, for the message.
    """
    authorities = [key for key in ("certificate-authority", "certificate-authority-data") if cluster.get(key)]

    def has(*keys: str) -> bool:
        return any(user.get(key) for key in keys)

    supported = {
        "token": has("token", "tokenFile"),
        "username and password": has("username", "password"),
        "exec": has("exec"),
    }
    methods = [name for name, there in supported.items() if there]
    without_key = has("client-certificate", "client-certificate-data") and not has("client-key", "client-key-data")
    without_name = [] if user.get("as") else [each for each in _NEED_AS if user.get(each)]
    for wrong, what in (
        (
            cluster.get("proxy-url"),
            "its cluster has a proxy-url, and Kumulus asks API servers directly; name a context without one",
        ),
        (
            user.get("auth-provider"),
            "its user has an auth-provider; write exec with the command that gives credentials instead",
        ),
        (
            cluster.get("insecure-skip-tls-verify") and authorities,
            f"its cluster has {' and '.join(authorities)} and insecure-skip-tls-verify; leave one out",
        ),
        (len(methods) > 1, f"its user has {' and '.join(methods)}; leave all but one out"),
        (without_key, "its user has a client-certificate and no client-key; write both"),
        (without_name, f"its user has {' and '.join(without_name)} without as; write whom to act as, too"),
    ):
        if wrong:
            raise KubeconfigError(f"{place}: {what}")


def headers(user: Mapping[str, Any], place: str) -> dict[str, str | tuple[str, ...]]:
    """The headers in every request that say who asks, and as whom."""
    found: dict[str, str | tuple[str, ...]] = {}
    if user.get("token") and not user.get("tokenFile"):
        found["Authorization"] = f"Bearer {user['token']}"
    elif user.get("username"):
        basic = f"{user['username']}:{user.get('password') or ''}".encode()
        found["Authorization"] = "Basic " + base64.b64encode(basic).decode()
    if not user.get("as"):
        return found
    groups, extra = user.get("as-groups") or [], user.get("as-user-extra") or {}
    if not isinstance(groups, list):
        raise KubeconfigError(f"{place}: its user's as-groups is no list; write it as one")
    if not isinstance(extra, Mapping) or not all(isinstance(each, list) for each in extra.values()):
        raise KubeconfigError(f"{place}: its user's as-user-extra is no mapping of lists; write it as one")
    found["Impersonate-User"] = str(user["as"])
    if user.get("as-uid"):
        found["Impersonate-Uid"] = str(user["as-uid"])
    if groups:
        found["Impersonate-Group"] = tuple(map(str, groups))
    for key, values in extra.items():
        found[f"Impersonate-Extra-{quote(str(key), safe=_IN_HEADER_NAMES)}"] = tuple(map(str, values))
    return found


class TokenFile:
    """A bearer token in a file that is renewed: the file is read again every minute, and when the token is refused.

    Args:
        fallback: used until the file has been read for the first time; empty for none.

    Raises:
        OSError, ValueError: it cannot be read, and there is no fallback.
    """

    def __init__(self, file: Path, fallback: str = "") -> None:
        self._file = file
        self._known = Credential(token=fallback)
        self._read_at = -_GOOD_FOR_S
        try:
            self._read()
        except (OSError, ValueError):
            if not fallback:
                raise

    async def current(self) -> tuple[Credential, None]:
        """The token that is valid now; the None is for a TLS context, which only a command's certificate needs."""
        if time.monotonic() - self._read_at >= _GOOD_FOR_S:
            try:
                self._read()
            except (OSError, ValueError):
                # The file may be between two writes; the server tells soon enough when the token has expired.
                self._read_at = time.monotonic()
        return self._known, None

    def refused(self, credential: Credential) -> None:
        """Read the file again before the next request, unless another request has done so."""
        if self._known is credential:
            self._read_at = time.monotonic() - _GOOD_FOR_S

    def _read(self) -> None:
        token = self._file.read_text().strip()
        if not token:
            raise ValueError("it is empty")
        if token != self._known.token:
            self._known = Credential(token=token)
        self._read_at = time.monotonic()
