"""The ASGI application: routes, error pages, JSON versions and feeds.

Every page has three URLs: its own, `.json` and `.feed`. Blocking work runs on a thread pool.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from kohort.admin.errors import AdminError, ClusterUnreachable, NoSuchGroup, NoSuchTopic
from kohort.admin.group_monitor import now_ms
from kohort.console import feed, html_renderer, security
from kohort.console.json_values import dump
from kohort.console.page import BadRequest, ConsoleContext, NotFound, Page, PageRequest, TooBusy
from kohort.console.pages.findings import findings
from kohort.console.pages.group import group, rebalance
from kohort.console.pages.groups import groups, overview
from kohort.console.pages.reset import reset, reset_form
from kohort.console.pages.topics import records, topic, topics
from kohort.console.url_encoding import from_segment

PAGES: Final[Mapping[str, Callable[[PageRequest], Page]]] = {
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

WRITES: Final[Mapping[str, Callable[[PageRequest, Mapping[str, str]], Page]]] = {
    "/groups/{group}/reset": reset,
}

FORM_BYTES_MAX: Final = 4_000_000
"""Enough for a reset plan of about ten thousand partitions."""

FEEDS_MAX: Final = 200
"""Open pages; each is rendered again after changes."""

_SUFFIXES: Final = (".json", ".feed")
_CACHE_FOREVER: Final = "public, max-age=31536000, immutable"

_STATUS: Final[tuple[tuple[type[Exception], int], ...]] = (
    (NotFound, 404),
    (NoSuchGroup, 404),
    (NoSuchTopic, 404),
    (BadRequest, 400),
    (ClusterUnreachable, 503),
    (TooBusy, 503),
    (security.Forbidden, 403),
    (AdminError, 409),
)


class App:
    def __init__(
        self, context: ConsoleContext, guard: security.Guard, is_stopping: Callable[[], bool]
    ) -> None:
        self._context = context
        self._guard = guard
        self._is_stopping = is_stopping
        self._feeds = 0

    def asgi(self) -> ASGIApp:
        routes = [
            Route("/", _redirect_to_overview),
            Route("/static/{name}", _static),
            *(
                Route(path, self._get_handler(make), methods=["GET"])
                for path, make in PAGES.items()
            ),
            *(Route(path, self._post_handler(do), methods=["POST"]) for path, do in WRITES.items()),
        ]
        inner = Starlette(
            routes=routes, exception_handlers={404: self._not_found, 405: self._not_found}
        )
        return _SecurityMiddleware(inner, self._guard)

    # Pages

    def _get_handler(
        self, make: Callable[[PageRequest], Page]
    ) -> Callable[[Request], Awaitable[Response]]:
        async def get(request: Request) -> Response:
            if request.scope["kohort.suffix"] == ".feed":
                return self._feed(request, make)
            return await run_in_threadpool(
                self._run, request, lambda: make(self._page_request(request))
            )

        return get

    def _post_handler(
        self, do: Callable[[PageRequest, Mapping[str, str]], Page]
    ) -> Callable[[Request], Awaitable[Response]]:
        async def post(request: Request) -> Response:
            body = bytearray()
            try:
                async for chunk in request.stream():
                    body += chunk
                    if len(body) > FORM_BYTES_MAX:
                        return self._error_response(
                            request, BadRequest(f"the form exceeds {FORM_BYTES_MAX:,} bytes")
                        )
            except ClientDisconnect:
                return Response(status_code=400)

            def work() -> Page:
                form = _read_form(bytes(body))
                security.check_write(
                    self._guard,
                    host=request.headers.get("host", ""),
                    origin=request.headers.get("origin"),
                    cookie=request.cookies.get(security.COOKIE),
                    form=form,
                )
                return do(self._page_request(request), form)

            return await run_in_threadpool(self._run, request, work)

        return post

    def _run(self, request: Request, work: Callable[[], Page]) -> Response:
        try:
            page = work()
        except _EXPECTED as error:
            return self._error_response(request, error)
        return self._respond(request, page)

    def _error_response(self, request: Request, error: Exception) -> Response:
        status = next(code for kind, code in _STATUS if isinstance(error, kind))
        reason = str(error)
        page = Page(
            template="error.html",
            title="Not found" if status == 404 else "Request failed",
            data={"error": reason[:1].upper() + reason[1:].rstrip(".") + "."},
            template_data={},
            refresh_s=None,
            status=status,
        )
        return self._respond(request, page)

    async def _not_found(self, request: Request, _: Exception) -> Response:
        return await run_in_threadpool(
            self._error_response, request, NotFound("this URL does not exist")
        )

    def _respond(self, request: Request, page: Page) -> Response:
        if request.scope["kohort.suffix"] == ".json":
            body = {
                "cluster": self._context.cluster.bootstrap_servers,
                "at_ms": now_ms(),
                "health": self._context.monitor.health(),
                **page.data,
            }
            return Response(dump(body), page.status, media_type="application/json")
        cookie = request.cookies.get(security.COOKIE) or security.new_cookie()
        text = html_renderer.render_page(page, self._base_data(request, cookie))
        response = Response(
            text.encode("utf-8", "replace"), page.status, media_type="text/html; charset=utf-8"
        )
        if security.COOKIE not in request.cookies:
            response.set_cookie(security.COOKIE, cookie, httponly=True, samesite="strict")
        return response

    def _base_data(self, request: Request, cookie: str) -> dict[str, Any]:
        """Template data of every page."""
        query = request.url.query
        return {
            "cluster": self._context.cluster.bootstrap_servers,
            "health": self._context.monitor.health(),
            "has_findings": self._context.findings is not None,
            "path": request.scope["path"],
            "theme": _theme(request),
            "query": f"?{query}" if query else "",
            "form_token": security.form_token(self._guard, cookie),
            "needs_token": self._guard.token is not None,
            "now_ms": now_ms(),
        }

    def _page_request(self, request: Request) -> PageRequest:
        names = {name: from_segment(part) for name, part in request.path_params.items()}
        known = {name: each for name, each in names.items() if each is not None}
        if len(known) < len(names):
            raise NotFound("this URL does not exist")
        return PageRequest(
            context=self._context,
            path=request.scope["path"],
            path_params=known,
            query=dict(request.query_params),
            now_ms=now_ms(),
        )

    # Feeds

    def _feed(self, request: Request, make: Callable[[PageRequest], Page]) -> Response:
        if self._feeds >= FEEDS_MAX:
            return Response(f"more than {FEEDS_MAX} pages are open: close some", 503)
        # Counted before anything is awaited, so that a burst cannot exceed the limit.
        self._feeds += 1

        def render() -> feed.FeedFrame:
            frame = self._base_data(request, "")
            health = html_renderer.render_health(frame)
            try:
                page = make(self._page_request(request))
            except _EXPECTED:
                # Keep the current content; the health banner shows the reason.
                return feed.FeedFrame(parts={}, chart=None, health=health, refresh_s=2.0)
            if page.refresh_s is None:
                return feed.FeedFrame(parts={}, chart=None, health=health, refresh_s=None)
            return feed.FeedFrame(
                parts=html_renderer.render_parts(page, frame),
                chart=None if page.chart is None else dump(page.chart),
                health=health,
                refresh_s=page.refresh_s,
            )

        async def body() -> Any:
            version = lambda: self._context.monitor.version  # noqa: E731
            async for message in feed.stream(render, version, self._is_stopping):
                yield message.encode("utf-8", "replace")

        return _FeedResponse(body(), self._end_feed)

    def _end_feed(self) -> None:
        self._feeds -= 1


_EXPECTED: Final = tuple(kind for kind, _ in _STATUS)


class _FeedResponse(StreamingResponse):
    """Calls `on_end` once, even if the browser disconnects before the first message."""

    def __init__(self, content: Any, on_end: Callable[[], None]) -> None:
        super().__init__(content, media_type="text/event-stream")
        self._on_end = on_end

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._on_end()


class _SecurityMiddleware:
    """Checks the Host header, splits off .json or .feed, and adds security headers."""

    def __init__(self, inner: ASGIApp, guard: security.Guard) -> None:
        self._inner = inner
        self._guard = guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        path: str = scope["path"]
        suffix = next((each for each in _SUFFIXES if path.endswith(each)), "")
        if suffix and not path.startswith("/static/"):
            path = path.removesuffix(suffix)
        inner = {**scope, "path": path, "kohort.suffix": suffix}

        async def send_with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": _with_security_headers(message["headers"])}
            await send(message)

        host = next((each for name, each in scope["headers"] if name == b"host"), b"")
        try:
            security.check_host(self._guard, host.decode("latin-1"), scope["server"][0])
        except security.Forbidden as error:
            await Response(str(error), 421, media_type="text/plain")(
                inner, receive, send_with_headers
            )
            return
        await self._inner(inner, receive, send_with_headers)


def _with_security_headers(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    given = list(headers)
    if not any(name == b"cache-control" for name, _ in given):
        given.append((b"cache-control", b"no-store"))
    return [*given, *((name.encode(), each.encode()) for name, each in security.HEADERS.items())]


def _theme(request: Request) -> str:
    """The theme of the cookie; empty for the system's theme."""
    chosen = request.cookies.get("kohort-theme", "")
    return chosen if chosen in {"light", "dark"} else ""


async def _redirect_to_overview(_: Request) -> Response:
    return RedirectResponse("/overview", 307)


async def _static(request: Request) -> Response:
    name = request.path_params["name"]
    kind = html_renderer.STATIC.get(name)
    if kind is None:
        return Response("file not found", 404, media_type="text/plain")
    return Response(
        html_renderer.static_file(name), media_type=kind, headers={"cache-control": _CACHE_FOREVER}
    )


def _read_form(body: bytes) -> dict[str, str]:
    try:
        return dict(
            parse_qsl(
                body.decode(), keep_blank_values=True, strict_parsing=bool(body), max_num_fields=50
            )
        )
    except (ValueError, UnicodeDecodeError):
        raise BadRequest("the form is not valid URL-encoded UTF-8") from None
