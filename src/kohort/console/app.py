"""Addresses, and what answers at them.

Every page has three: its own, `.json` and `.feed`. Work that may wait is done on threads.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from kohort.admin.errors import AdminError, ClusterUnreachable, NoSuchGroup, NoSuchTopic
from kohort.admin.picture import now_ms
from kohort.console import feed, guard, rendering
from kohort.console.address import from_address
from kohort.console.jsonable import dump
from kohort.console.page import BadQuestion, Desk, NotFound, Page, Visit
from kohort.console.pages.findings import findings
from kohort.console.pages.group import group
from kohort.console.pages.groups import groups
from kohort.console.pages.overview import overview
from kohort.console.pages.rebalance import rebalance
from kohort.console.pages.reset import reset, reset_form
from kohort.console.pages.topics import records, topic, topics

PAGES: Final[Mapping[str, Callable[[Visit], Page]]] = {
    "/overview": overview,
    "/groups": groups,
    "/groups/{group}": group,
    "/groups/{group}/rebalances/{key}": rebalance,
    "/groups/{group}/reset": reset_form,
    "/topics": topics,
    "/topics/{topic}": topic,
    "/topics/{topic}/records": records,
    "/findings": findings,
}

WRITES: Final[Mapping[str, Callable[[Visit, Mapping[str, str]], Page]]] = {
    "/groups/{group}/reset": reset,
}

FORM_BYTES_MAX: Final = 4_000_000
"""Room for a plan of some ten thousand partitions."""

FEEDS_MAX: Final = 200
"""Open pages at once; each costs a drawing now and then."""

_ENDINGS: Final = (".json", ".feed")
_KEPT: Final = "public, max-age=31536000, immutable"

_STATUS: Final[tuple[tuple[type[Exception], int], ...]] = (
    (NotFound, 404),
    (NoSuchGroup, 404),
    (NoSuchTopic, 404),
    (BadQuestion, 400),
    (ClusterUnreachable, 503),
    (guard.NotAllowed, 403),
    (AdminError, 409),
)


class App:
    def __init__(self, desk: Desk, keeper: guard.Guard, is_ending: Callable[[], bool]) -> None:
        self._desk = desk
        self._guard = keeper
        self._is_ending = is_ending
        self._feeds = 0

    def asgi(self) -> ASGIApp:
        routes = [
            Route("/", _to_overview),
            Route("/static/{name}", _static),
            *(Route(path, self._getter(make), methods=["GET"]) for path, make in PAGES.items()),
            *(Route(path, self._poster(do), methods=["POST"]) for path, do in WRITES.items()),
        ]
        inner = Starlette(routes=routes, exception_handlers={404: self._lost, 405: self._lost})
        return _Gate(inner, self._guard)

    # Pages

    def _getter(self, make: Callable[[Visit], Page]) -> Callable[[Request], Awaitable[Response]]:
        async def get(request: Request) -> Response:
            if request.scope["kohort.ending"] == ".feed":
                return self._feed(request, make)
            return await run_in_threadpool(
                self._answer, request, lambda: make(self._visit(request))
            )

        return get

    def _poster(
        self, do: Callable[[Visit, Mapping[str, str]], Page]
    ) -> Callable[[Request], Awaitable[Response]]:
        async def post(request: Request) -> Response:
            body = bytearray()
            async for chunk in request.stream():
                body += chunk
                if len(body) > FORM_BYTES_MAX:
                    return self._refuse(request, BadQuestion("the form is too large"))

            def work() -> Page:
                form = _read_form(bytes(body))
                guard.check_write(
                    self._guard,
                    host=request.headers.get("host", ""),
                    origin=request.headers.get("origin"),
                    cookie=request.cookies.get(guard.COOKIE),
                    form=form,
                )
                return do(self._visit(request), form)

            return await run_in_threadpool(self._answer, request, work)

        return post

    def _answer(self, request: Request, work: Callable[[], Page]) -> Response:
        try:
            page = work()
        except _EXPECTED as error:
            return self._refuse(request, error)
        return self._respond(request, page)

    def _refuse(self, request: Request, error: Exception) -> Response:
        status = next(code for kind, code in _STATUS if isinstance(error, kind))
        reason = str(error)
        page = Page(
            template="error.html",
            title="Not possible" if status != 404 else "Not here",
            told={"error": reason[:1].upper() + reason[1:].rstrip(".") + "."},
            shown={},
            pace_s=None,
            status=status,
        )
        return self._respond(request, page)

    async def _lost(self, request: Request, _: Exception) -> Response:
        return await run_in_threadpool(
            self._refuse, request, NotFound("there is no page at this address")
        )

    def _respond(self, request: Request, page: Page) -> Response:
        if request.scope["kohort.ending"] == ".json":
            told = {
                "cluster": self._desk.cluster.bootstrap_servers,
                "at_ms": now_ms(),
                "health": self._desk.following.health(),
                **page.told,
            }
            return Response(dump(told), page.status, media_type="application/json")
        cookie = request.cookies.get(guard.COOKIE) or guard.new_cookie()
        text = rendering.render_page(page, self._frame(request, cookie))
        response = Response(
            text.encode("utf-8", "replace"), page.status, media_type="text/html; charset=utf-8"
        )
        if guard.COOKIE not in request.cookies:
            response.set_cookie(guard.COOKIE, cookie, httponly=True, samesite="strict")
        return response

    def _frame(self, request: Request, cookie: str) -> dict[str, Any]:
        """What stands around every page."""
        query = request.url.query
        return {
            "cluster": self._desk.cluster.bootstrap_servers,
            "health": self._desk.following.health(),
            "has_findings": self._desk.findings is not None,
            "path": request.scope["path"],
            "theme": _theme(request),
            "query": f"?{query}" if query else "",
            "form_token": guard.form_token(self._guard, cookie),
            "needs_token": self._guard.token is not None,
            "now_ms": now_ms(),
        }

    def _visit(self, request: Request) -> Visit:
        names = {name: from_address(part) for name, part in request.path_params.items()}
        known = {name: each for name, each in names.items() if each is not None}
        if len(known) < len(names):
            raise NotFound("there is no page at this address")
        return Visit(
            desk=self._desk,
            path=request.scope["path"],
            names=known,
            query=dict(request.query_params),
            now_ms=now_ms(),
        )

    # Feeds

    def _feed(self, request: Request, make: Callable[[Visit], Page]) -> Response:
        if self._feeds >= FEEDS_MAX:
            return Response("too many pages are open", 503)

        def draw() -> feed.Frame:
            frame = self._frame(request, "")
            health = rendering.render_health(frame)
            try:
                page = make(self._visit(request))
            except _EXPECTED:
                # What is shown stays; the health tells why.
                return feed.Frame(parts={}, chart=None, health=health, pace_s=2.0)
            if page.pace_s is None:
                return feed.Frame(parts={}, chart=None, health=health, pace_s=None)
            return feed.Frame(
                parts=rendering.render_parts(page, frame),
                chart=None if page.chart is None else dump(page.chart),
                health=health,
                pace_s=page.pace_s,
            )

        async def body() -> Any:
            self._feeds += 1
            try:
                version = lambda: self._desk.following.version  # noqa: E731
                async for message in feed.stream(draw, version, self._is_ending):
                    yield message.encode("utf-8", "replace")
            finally:
                self._feeds -= 1

        return StreamingResponse(body(), media_type="text/event-stream")


_EXPECTED: Final = tuple(kind for kind, _ in _STATUS)


class _Gate:
    """Looks at every request first: whose name it calls us by, and which of three forms it wants.

    And at every response last: what its page may do.
    """

    def __init__(self, inner: ASGIApp, keeper: guard.Guard) -> None:
        self._inner = inner
        self._guard = keeper

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        path: str = scope["path"]
        ending = next((each for each in _ENDINGS if path.endswith(each)), "")
        if ending and not path.startswith("/static/"):
            path = path.removesuffix(ending)
        inner = {**scope, "path": path, "kohort.ending": ending}

        async def send_guarded(message: Any) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": _guarded(message["headers"])}
            await send(message)

        host = next((each for name, each in scope["headers"] if name == b"host"), b"")
        try:
            guard.check_host(self._guard, host.decode("latin-1"))
        except guard.NotAllowed as error:
            await Response(str(error), 421, media_type="text/plain")(inner, receive, send_guarded)
            return
        await self._inner(inner, receive, send_guarded)


def _guarded(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    given = list(headers)
    if not any(name == b"cache-control" for name, _ in given):
        given.append((b"cache-control", b"no-store"))
    return [*given, *((name.encode(), each.encode()) for name, each in guard.HEADERS.items())]


def _theme(request: Request) -> str:
    """What the reader chose, if anything; else the system's choice holds."""
    chosen = request.cookies.get("kohort-theme", "")
    return chosen if chosen in {"light", "dark"} else ""


async def _to_overview(_: Request) -> Response:
    return RedirectResponse("/overview", 307)


async def _static(request: Request) -> Response:
    name = request.path_params["name"]
    kind = rendering.STATIC.get(name)
    if kind is None:
        return Response("there is no such file", 404, media_type="text/plain")
    return Response(rendering.static_file(name), media_type=kind, headers={"cache-control": _KEPT})


def _read_form(body: bytes) -> dict[str, str]:
    try:
        return dict(
            parse_qsl(
                body.decode(), keep_blank_values=True, strict_parsing=bool(body), max_num_fields=50
            )
        )
    except (ValueError, UnicodeDecodeError):
        raise BadQuestion("the form cannot be read") from None
