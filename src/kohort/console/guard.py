"""Who may do what: which hosts are ours, who may write, and what pages forbid themselves. Pure.

Reading is free to whoever reaches the console; by default nobody does but this machine. A page of
another site must not read it through a browser here, so on loopback the Host header must be a name
of loopback: a name that somebody else's server resolves to us is refused (DNS rebinding).

A write needs all of: the page's own origin, the token of its form, which belongs to the browser's
cookie, and, where the console listens elsewhere than on loopback, the token of the console.
"""

import hashlib
import hmac
import ipaddress
import secrets
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from kohort.types import value

COOKIE: Final = "kohort-console"

HEADERS: Final = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    # Not no-referrer: with it browsers hide the origin of our own forms.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}

_COOKIE_BYTES: Final = 16


class NotAllowed(Exception):
    """A request that is refused; one sentence says why."""


@value
class Guard:
    is_loopback: bool
    token: str | None
    """What a write must bring along; None where none is needed."""
    secret: bytes


def make_guard(host: str, token: str | None) -> Guard:
    """For a console that listens on this address. Elsewhere than on loopback a token is made
    unless one is given."""
    is_local = is_loopback(host)
    if token is None and not is_local:
        token = secrets.token_urlsafe(12)
    return Guard(is_loopback=is_local, token=token, secret=secrets.token_bytes(32))


def is_loopback(host: str) -> bool:
    name = host.strip("[]").lower().rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def check_host(guard: Guard, host: str) -> None:
    if guard.is_loopback and not is_loopback(_hostname(host)):
        raise NotAllowed("this console answers only to the name of this machine, localhost")


def check_write(
    guard: Guard, *, host: str, origin: str | None, cookie: str | None, form: Mapping[str, str]
) -> None:
    if origin is None or urlsplit(origin).netloc.lower() != host.lower() or not host:
        raise NotAllowed("a change must come from a page of this console")
    expected = form_token(guard, cookie or "")
    if not cookie or not _is_same(form.get("form_token", ""), expected):
        raise NotAllowed("this page is from before the console was started: open it again")
    if guard.token is not None and not _is_same(form.get("token", ""), guard.token):
        raise NotAllowed("a change needs the token that the console told when it was started")


def new_cookie() -> str:
    return secrets.token_urlsafe(_COOKIE_BYTES)


def form_token(guard: Guard, cookie: str) -> str:
    """What a form must bring along: only a page that we gave to this browser knows it."""
    return hmac.new(guard.secret, cookie.encode(), hashlib.sha256).hexdigest()


def _hostname(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _is_same(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), expected.encode())
