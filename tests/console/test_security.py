"""Host header check, CSRF protection, tokens and security headers."""

import pytest

from kohort.console.security import (
    HEADERS,
    Forbidden,
    Guard,
    check_host,
    check_write,
    form_token,
    is_loopback,
    make_guard,
    new_cookie,
)

NON_LOOPBACK = "10.0.0.1"
GIVEN = "given"


@pytest.mark.parametrize(
    ("host", "is_local"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("localhost", True),
        ("LOCALHOST.", True),
        ("::1", True),
        ("[::1]", True),
        ("10.0.0.1", False),
        ("example.org", False),
        ("127.0.0.1.example.org", False),
        ("localhost.example.org", False),
        ("", False),
    ],
)
def test_loopback_names_are_recognized(host: str, is_local: bool) -> None:  # noqa: FBT001
    assert is_loopback(host) is is_local


def test_a_token_is_generated_only_for_non_loopback_addresses() -> None:
    assert make_guard("127.0.0.1", None).token is None
    for host in ("127.0.0.1", NON_LOOPBACK):
        assert make_guard(host, GIVEN).token == GIVEN
    assert len(make_guard(NON_LOOPBACK, None).token or "") >= 16


@pytest.mark.parametrize("host", ["evil.example:8080", "evil.example", "", "[", "127.0.0.1.evil:1"])
def test_on_loopback_other_hosts_are_rejected(host: str) -> None:
    with pytest.raises(Forbidden):
        check_host(make_guard("127.0.0.1", None), host)


@pytest.mark.parametrize("host", ["127.0.0.1:8080", "localhost:1", "[::1]:8080", "localhost"])
def test_on_loopback_loopback_hosts_are_accepted(host: str) -> None:
    check_host(make_guard("127.0.0.1", None), host)


def test_on_other_addresses_any_host_is_accepted() -> None:
    check_host(make_guard(NON_LOOPBACK, None), "console.example:8080")


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
    write(make_guard("127.0.0.1", None))
    write(make_guard(NON_LOOPBACK, "secret"))


@pytest.mark.parametrize(
    "changes",
    [
        {"origin": None},
        {"origin": "null"},
        {"origin": "http://evil.example"},
        {"origin": "http://localhost:8081"},
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
        write(make_guard(NON_LOOPBACK, "secret"), **changes)


def test_a_form_token_is_valid_for_one_console_only() -> None:
    cookie = new_cookie()
    one, other = make_guard("127.0.0.1", None), make_guard("127.0.0.1", None)

    with pytest.raises(Forbidden):
        write(other, cookie=cookie, form_token=form_token(one, cookie))


def test_the_content_security_policy_allows_only_own_scripts() -> None:
    policy = HEADERS["content-security-policy"]

    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
