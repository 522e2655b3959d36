"""Access checks: Host header, CSRF protection of writes, and security response headers. Pure.

Reads need no authentication; by default the console listens on loopback only. There, the Host
header must be a loopback name, which prevents DNS rebinding by other sites.

A write requires the console's own Origin and a form token that is bound to the browser's cookie
(CSRF). If the console listens on a non-loopback address, it also requires the console's token.
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
    is_loopback: bool
    token: str | None
    """Required for writes; None if no token is required."""
    secret: bytes


def make_guard(host: str, token: str | None) -> Guard:
    """For a console that listens on this address. Generates a token for non-loopback addresses."""
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
        raise Forbidden("this console accepts only requests for localhost: check the Host header")


def check_write(
    guard: Guard, *, host: str, origin: str | None, cookie: str | None, form: Mapping[str, str]
) -> None:
    if origin is None or urlsplit(origin).netloc.lower() != host.lower() or not host:
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


def _hostname(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _is_same(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), expected.encode())
