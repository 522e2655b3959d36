"""Who may read, who may write, and what pages forbid themselves."""

import pytest

from kohort.console.guard import (
    HEADERS,
    Guard,
    NotAllowed,
    check_host,
    check_write,
    form_token,
    is_loopback,
    make_guard,
    new_cookie,
)

ELSEWHERE = "10.0.0.1"
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
def test_loopback_is_known_by_its_names(host: str, is_local: bool) -> None:  # noqa: FBT001
    assert is_loopback(host) is is_local


def test_a_token_is_needed_only_beyond_loopback_unless_one_is_given() -> None:
    assert make_guard("127.0.0.1", None).token is None
    for host in ("127.0.0.1", ELSEWHERE):
        assert make_guard(host, GIVEN).token == GIVEN
    assert len(make_guard(ELSEWHERE, None).token or "") >= 16


@pytest.mark.parametrize("host", ["evil.example:8080", "evil.example", "", "[", "127.0.0.1.evil:1"])
def test_on_loopback_other_names_are_refused(host: str) -> None:
    with pytest.raises(NotAllowed):
        check_host(make_guard("127.0.0.1", None), host)


@pytest.mark.parametrize("host", ["127.0.0.1:8080", "localhost:1", "[::1]:8080", "localhost"])
def test_on_loopback_our_names_are_taken(host: str) -> None:
    check_host(make_guard("127.0.0.1", None), host)


def test_elsewhere_any_name_is_taken() -> None:
    check_host(make_guard(ELSEWHERE, None), "console.example:8080")


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


def test_a_write_from_our_own_page_is_taken() -> None:
    write(make_guard("127.0.0.1", None))
    write(make_guard(ELSEWHERE, "secret"))


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
def test_a_write_from_anywhere_else_is_refused(changes: dict[str, str | None]) -> None:
    with pytest.raises(NotAllowed):
        write(make_guard(ELSEWHERE, "secret"), **changes)


def test_a_form_of_one_console_is_nothing_to_another() -> None:
    cookie = new_cookie()
    one, other = make_guard("127.0.0.1", None), make_guard("127.0.0.1", None)

    with pytest.raises(NotAllowed):
        write(other, cookie=cookie, form_token=form_token(one, cookie))


def test_pages_run_no_script_but_our_files() -> None:
    policy = HEADERS["content-security-policy"]

    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
