"""A client's TLS context that makes many connections to one server cheap."""

from __future__ import annotations

import ssl


class ResumingContext(ssl.SSLContext):
    """A TLS context whose connections, after the first, resume its session (RFC 8446, section 2.2).

    A full handshake costs the server and the client each a signature and the verification of the other's certificate:
    with hundreds of connections to an API server that is a noticeable part of all work (docs/performance.md). If the
    server rejects a ticket, a full handshake follows.
    """

    _newest: ssl.SSLObject | None = None
    _session: ssl.SSLSession | None = None

    @classmethod
    def for_client(cls, cafile: str | None = None, cadata: str | None = None) -> ResumingContext:
        """Like :func:`ssl.create_default_context`: the server's certificate and its host name are verified.

        Args:
            cafile: PEM file of the certificate authorities to trust; the system's when neither is given.
            cadata: the same as a text.

        Raises:
            ssl.SSLError, OSError: they cannot be read.
        """
        context = cls(ssl.PROTOCOL_TLS_CLIENT)
        if cafile or cadata:
            context.load_verify_locations(cafile, cadata=cadata)
        else:
            context.load_default_certs()
        return context

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        """See :class:`ssl.SSLContext`; asyncio calls it, and has no other way to pass a session."""
        # A ticket comes after the handshake, with the first answer: it is looked for when the next connection is made.
        # Before the end of the handshake there is no version yet, and the session cannot be read.
        newest = self._newest
        latest = newest.session if newest is not None and newest.version() is not None else None
        if latest is not None and latest.has_ticket:
            self._session = latest
        self._newest = super().wrap_bio(incoming, outgoing, server_side, server_hostname, session or self._session)
        return self._newest
