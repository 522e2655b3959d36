"""kohort serve on a wildcard address, in a network of its own that no other machine can reach."""

import json
import shutil
import subprocess
import sys
from typing import Any

import pytest

WILDCARD = "0.0.0.0"  # noqa: S104 - in a private network

OWN = "10.77.0.1"
"""The address of the private network."""

PREPARE = f"""
ip link set lo up && ip address add {OWN}/32 dev lo && ip route add default dev lo src {OWN} &&
exec "$@"
"""


def in_private_network(*command: str) -> list[str]:
    return ["unshare", "--user", "--map-root-user", "--net", "sh", "-c", PREPARE, "sh", *command]


def find_obstacle() -> str:
    for tool in ("unshare", "ip"):
        if shutil.which(tool) is None:
            return f"{tool} is not installed"
    ended = subprocess.run(in_private_network("true"), capture_output=True, text=True, check=False)
    return ended.stderr.strip() if ended.returncode else ""


@pytest.fixture(scope="module")
def observed(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What tests.cli.wildcard_probe has observed."""
    if obstacle := find_obstacle():
        pytest.skip(f"no private network is possible: {obstacle}")
    directory = tmp_path_factory.mktemp("wildcard")
    command = in_private_network(sys.executable, "-m", "tests.cli.wildcard_probe", str(directory))
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


@pytest.mark.parametrize("listen", [WILDCARD, "0", "[::]"])
def test_wildcard_address_is_never_advertised(observed: Any, listen: str) -> None:
    node = observed[listen]

    expected = "::1" if listen == "[::]" else OWN
    assert node["advertised"] == expected
    assert node["ready"] == expected


@pytest.mark.parametrize("listen", [WILDCARD, "0", "[::]", OWN])
def test_exposed_address_is_warned_about_in_one_line(observed: Any, listen: str) -> None:
    (warning,) = [each for each in observed[listen]["log"].splitlines() if " exposed " in each]

    assert f"address={listen}:" in warning
    assert "there is no authentication" in warning
    assert "listen on 127.0.0.1, or let a firewall admit only your clients" in warning


def test_exposed_metrics_and_console_are_warned_about(observed: Any) -> None:
    log = observed["advertise"]["log"]

    assert log.count(" metrics-exposed ") == 1
    assert log.count("kohort: warning: every machine that can connect to the console") == 1


def test_given_address_is_advertised(observed: Any) -> None:
    assert observed["advertise"]["advertised"] == "node.example"


@pytest.mark.parametrize("page", ["metrics", "console"])
def test_pages_on_a_wildcard_address_check_the_host_name(observed: Any, page: str) -> None:
    assert observed["advertise"][page] == {
        "127.0.0.1": 200,
        "localhost": 200,
        OWN: 200,
        "node.example": 200,
        "allowed.example": 200,
        "evil.example": 421,
        WILDCARD: 421,
    }


def test_console_url_can_be_opened(observed: Any) -> None:
    assert observed["advertise"]["console_host"] == OWN
