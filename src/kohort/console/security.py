"""Access checks: Host header, CSRF protection of writes, and security response headers. Pure.

Reads need no authentication; by default the console listens on loopback only. The Host header must
be a loopback name, the listening address or an allowed name, which prevents DNS rebinding by other
sites.

A write requires the console's own Origin (scheme, host and port) and a form token that is bound to
the browser's cookie (CSRF). If the console listens on a non-loopback address, it also requires the
console's token.
"""

import hashlib
import hmac
import secrets
from collections.abc import Mapping
from typing import Final

from kohort.settings.hosts import AllowedHosts, is_loopback
from kohort.types import value

COOKIE: Final = "kohort-console"

HEADERS: Final = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    # Not no-referrer: browsers would omit the Origin of the console's own forms.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}

_COOKIE_BYTES: Final = 16


class Forbidden(Exception):
    """403 or 421; the message is one sentence."""


@value
class Guard:
    hosts: AllowedHosts
    token: str | None
    """Required for writes; None if no token is required."""
    secret: bytes


def make_guard(listen_host: str, token: str | None, allowed: AllowedHosts) -> Guard:
    """For a console that listens on this address. Generates a token for non-loopback addresses."""
    if token is None and not is_loopback(listen_host):
        token = secrets.token_urlsafe(12)
    return Guard(hosts=allowed.including(listen_host), token=token, secret=secrets.token_bytes(32))


def check_host(guard: Guard, host: str, connected_to: str) -> None:
    """`connected_to` is the address of this machine that the browser has connected to."""
    if not guard.hosts.allows(host, connected_to):
        raise Forbidden(
            "this console is not served under this host name: allow it with --allowed-host"
        )


def check_write(
    guard: Guard, *, host: str, origin: str | None, cookie: str | None, form: Mapping[str, str]
) -> None:
    if origin is None or not guard.hosts.is_own_origin(origin, host):
        raise Forbidden("changes must be submitted from a page of this console")
    expected = form_token(guard, cookie or "")
    if not cookie or not _is_same(form.get("form_token", ""), expected):
        raise Forbidden("the form has expired because the console was restarted: reload the page")
    if guard.token is not None and not _is_same(form.get("token", ""), guard.token):
        raise Forbidden("changes require the token that the console printed when it started")


def new_cookie() -> str:
    return secrets.token_urlsafe(_COOKIE_BYTES)


def form_token(guard: Guard, cookie: str) -> str:
    """The CSRF token of forms, bound to the browser's cookie."""
    return hmac.new(guard.secret, cookie.encode(), hashlib.sha256).hexdigest()


def _is_same(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), expected.encode())
