"""An HTTP client of the console: gets pages, keeps cookies, reads feeds."""

import http.client
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import unescape
from typing import Any
from urllib.parse import urlencode, urlsplit

from tests.wait import wait_until

TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpResponse:
    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)


@dataclass(slots=True)
class HttpClient:
    url: str
    cookies: dict[str, str] = field(default_factory=dict)

    @property
    def host(self) -> str:
        return urlsplit(self.url).netloc

    def get(self, path: str, **headers: str) -> HttpResponse:
        return self.request("GET", path, headers)

    def json(self, path: str) -> Any:
        """The JSON version of a page; None if its status is not 200."""
        page, _, query = path.partition("?")
        response = self.get(f"{page}.json{'?' if query else ''}{query}")
        return response.json if response.status == 200 else None

    def wait_json(self, path: str, condition: Any) -> Any:
        def find() -> Any:
            data = self.json(path)
            return data if data is not None and condition(data) else None

        return wait_until(find, TIMEOUT_S, path)

    def post(
        self, path: str, form: Mapping[str, str], *, origin: str | None = "", **headers: str
    ) -> HttpResponse:
        """With the console's own Origin, unless another one is given, or None for no header."""
        if origin is not None:
            headers["origin"] = origin or self.url
        return self.request(
            "POST",
            path,
            {**headers, "content-type": "application/x-www-form-urlencoded"},
            urlencode(form),
        )

    def form_token(self, path: str) -> str:
        found = re.search(r'name="form_token" value="([^"]*)"', self.get(path).text)
        assert found is not None
        return unescape(found[1])

    def request(
        self, method: str, path: str, headers: Mapping[str, str], body: str | None = None
    ) -> HttpResponse:
        connection = http.client.HTTPConnection(self.host, timeout=TIMEOUT_S)
        given = dict(headers)
        if self.cookies:
            given["cookie"] = "; ".join(f"{name}={each}" for name, each in self.cookies.items())
        try:
            connection.request(method, path, body, given)
            response = connection.getresponse()
            text = response.read().decode()
        finally:
            connection.close()
        for each in response.headers.get_all("set-cookie") or []:
            name, _, value = each.partition(";")[0].partition("=")
            self.cookies[name] = value
        return HttpResponse(
            status=response.status,
            headers={name.lower(): each for name, each in response.headers.items()},
            text=text,
        )

    @contextmanager
    def feed(self, path: str) -> Iterator[Iterator[tuple[str, Any]]]:
        """The messages of a page's feed as they arrive: event and data."""
        connection = http.client.HTTPConnection(self.host, timeout=TIMEOUT_S)
        try:
            connection.request("GET", f"{path}.feed")
            response = connection.getresponse()
            assert response.status == 200
            assert response.headers["content-type"].startswith("text/event-stream")
            yield _messages(response)
        finally:
            connection.close()


def _messages(response: http.client.HTTPResponse) -> Iterator[tuple[str, Any]]:
    kind = ""
    while line := response.readline().decode().rstrip("\n"):
        pass
    while True:
        line = response.readline().decode()
        if not line:
            return
        if line.startswith("event: "):
            kind = line[7:].strip()
        elif line.startswith("data: "):
            yield kind, json.loads(line[6:])
