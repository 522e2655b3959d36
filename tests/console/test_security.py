"""Host header check, CSRF protection, tokens and security headers."""

import pytest

from kohort.console.security import (
    HEADERS,
    Forbidden,
    Guard,
    check_host,
    check_write,
    form_token,
    make_guard,
    new_cookie,
)
from kohort.settings.hosts import read_allowed_hosts

NON_LOOPBACK = "10.0.0.1"
WILDCARD = "0.0.0.0"  # noqa: S104 - nothing listens here
GIVEN = "given"


def guard_of(host: str, token: str | None = None, *allowed: str) -> Guard:
    return make_guard(host, token, read_allowed_hosts(allowed))


def test_a_token_is_generated_only_for_non_loopback_addresses() -> None:
    assert guard_of("127.0.0.1", None).token is None
    for host in ("127.0.0.1", NON_LOOPBACK):
        assert guard_of(host, GIVEN).token == GIVEN
    assert len(guard_of(NON_LOOPBACK, None).token or "") >= 16


@pytest.mark.parametrize("listen", ["127.0.0.1", NON_LOOPBACK, WILDCARD])
@pytest.mark.parametrize("host", ["evil.example:8080", "evil.example", "", "[", "127.0.0.1.evil:1"])
def test_other_hosts_are_rejected_on_every_address(listen: str, host: str) -> None:
    with pytest.raises(Forbidden, match="--allowed-host"):
        check_host(guard_of(listen), host, "10.0.0.2")


@pytest.mark.parametrize("listen", ["127.0.0.1", NON_LOOPBACK, WILDCARD])
@pytest.mark.parametrize(
    "host", ["127.0.0.1:8080", "localhost:1", "[::1]:8080", "10.0.0.2:8080", "console.example"]
)
def test_loopback_own_and_allowed_hosts_are_accepted(listen: str, host: str) -> None:
    check_host(guard_of(listen, None, "console.example"), host, "10.0.0.2")


def write(guard: Guard, **changes: str | None) -> None:
    cookie = "cookie"
    given: dict[str, str | None] = {
        "host": "localhost:8080",
        "origin": "http://localhost:8080",
        "cookie": cookie,
        "form_token": form_token(guard, cookie),
        "token": guard.token,
        **changes,
    }
    check_write(
        guard,
        host=given["host"] or "",
        origin=given["origin"],
        cookie=given["cookie"],
        form={name: each for name in ("form_token", "token") if (each := given[name]) is not None},
    )


def test_a_write_from_the_consoles_page_is_accepted() -> None:
    write(guard_of("127.0.0.1", None))
    write(guard_of(NON_LOOPBACK, "secret"))


@pytest.mark.parametrize(
    "changes",
    [
        {"origin": None},
        {"origin": "null"},
        {"origin": "http://evil.example"},
        {"origin": "http://localhost:8081"},
        {"origin": "https://localhost:8080"},
        {"origin": "http://localhost"},
        {"host": "", "origin": "null"},
        {"cookie": None},
        {"cookie": "another"},
        {"form_token": None},
        {"form_token": ""},
        {"form_token": "0" * 64},
        {"form_token": "\udcff"},
        {"token": None},
        {"token": "wrong"},
    ],
)
def test_a_write_with_a_wrong_origin_cookie_or_token_is_rejected(
    changes: dict[str, str | None],
) -> None:
    with pytest.raises(Forbidden):
        write(guard_of(NON_LOOPBACK, "secret"), **changes)


def test_a_form_token_is_valid_for_one_console_only() -> None:
    cookie = new_cookie()
    one, other = guard_of("127.0.0.1", None), guard_of("127.0.0.1", None)

    with pytest.raises(Forbidden):
        write(other, cookie=cookie, form_token=form_token(one, cookie))


def test_the_content_security_policy_allows_only_own_scripts() -> None:
    policy = HEADERS["content-security-policy"]

    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
