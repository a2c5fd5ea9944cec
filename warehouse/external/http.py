"""Send HTTP requests with a total time limit, and follow redirects on the same server only.

Credentials belong to one server: a redirect to another scheme, host or port is refused before anything is sent there.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

from iosig.warehouse.external.deadlines import Timeouts
from iosig.warehouse.printable import printable

if TYPE_CHECKING:
    import httpx

_MAX_REDIRECTS = 5
_MAX_REASON_CHARS = 300


class RequestError(Exception):
    """Raised when a request gets no response; the message completes a sentence that begins with the server's name.

    has_detail: whether the message contains text of a library, which may include the URL and its credentials.
    """

    def __init__(self, message: str, *, has_detail: bool = False) -> None:
        super().__init__(message)
        self.has_detail = has_detail


class RequestTimeoutError(RequestError):
    """Raised when a request exceeds its time limit."""


@dataclass(frozen=True, slots=True)
class Response:
    """Status and headers of a response."""

    status: int
    reason: str
    headers: Mapping[str, str]


def fetch(
    method: str,
    url: str,
    timeouts: Timeouts,
    sink: IO[bytes] | None,
    *,
    headers: Mapping[str, str] | None = None,
    content: bytes | Iterable[bytes] | None = None,
    verify: bool | str = True,
    certificate: str | tuple[str, str] | None = None,
) -> Response:
    """Send a request and write the response body, as transferred, into `sink`; None leaves the body unread.

    verify: True for the certificate authorities of the system and of certifi, a file or folder with others, or False to
    skip verification. Raises RequestTimeoutError, or RequestError for any other request without a response, such as a
    refused redirect.
    """
    import asyncio
    import ssl

    import httpx

    async def _fetch() -> Response:
        limits = httpx.Timeout(timeouts.timeout_s)
        async with (
            asyncio.timeout(timeouts.total_timeout_s),
            httpx.AsyncClient(timeout=limits, verify=_tls(url, verify, certificate)) as client,
        ):
            request = client.build_request(method, url, headers=headers, content=content)
            response = await _send_following_redirects(client, request)
            try:
                if sink is not None:
                    async for chunk in response.aiter_raw():
                        sink.write(chunk)
            finally:
                await response.aclose()
            return Response(response.status_code, response.reason_phrase, response.headers)

    try:
        return asyncio.run(_fetch())
    except httpx.TimeoutException as error:
        raise RequestTimeoutError(f"did not answer within {timeouts.timeout_s:g} s") from error
    except TimeoutError as error:
        raise RequestTimeoutError(f"did not complete its answer within {timeouts.total_timeout_s:g} s") from error
    except (httpx.HTTPError, httpx.InvalidURL, ssl.SSLError, UnicodeError) as error:
        reason = printable(" ".join(_root_cause(error).split()))[:_MAX_REASON_CHARS]
        raise RequestError(f"fails: {reason}", has_detail=True) from error


def _root_cause(error: BaseException) -> str:
    """Return the system's message on a failed connection, or else the library's own message."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.errno is not None:
            return os.strerror(cause.errno) if cause.errno > 0 else str(cause.strerror)
        cause = cause.__cause__ or cause.__context__
    return str(error) or type(error).__name__


async def _send_following_redirects(client: httpx.AsyncClient, request: httpx.Request) -> httpx.Response:
    """Send a request and follow redirects on its own server."""
    first = request.url
    for _ in range(_MAX_REDIRECTS + 1):
        response = await client.send(request, stream=True)
        if response.next_request is None:
            return response
        await response.aclose()
        request = response.next_request
        require_same_origin(str(first), str(request.url))
    raise RequestError(f"redirects more than {_MAX_REDIRECTS} times")


def require_same_origin(url: str, target: str) -> None:
    """Raise RequestError, naming the target's server, if the target's scheme, host or port differs from the URL's."""
    if get_origin(url) != get_origin(target):
        raise RequestError(f"redirects to another server, {printable(get_origin(target))}, which is refused")


def get_origin(url: str) -> str:
    """Return a URL's scheme, host and port, such as `https://host` or `http://host:8080`."""
    import httpx

    parsed = httpx.URL(url)
    host = f"[{parsed.host}]" if ":" in parsed.host else parsed.host
    return f"{parsed.scheme}://{host}" + (f":{parsed.port}" if parsed.port is not None else "")


def _tls(url: str, verify: bool | str, certificate: str | tuple[str, str] | None) -> Any:
    """Return the TLS settings of a client; certificates are loaded for https only, because loading takes time."""
    if not url.lower().startswith("https:"):
        return False
    import ssl

    import httpx

    if isinstance(verify, str):
        is_folder = os.path.isdir(verify)
        context = ssl.create_default_context(cafile=None if is_folder else verify, capath=verify if is_folder else None)
    else:
        context = httpx.create_ssl_context(verify=verify)
        if verify:
            # httpx itself trusts only certifi's authorities; a site installs its own in the system's store
            context.load_default_certs()
    if certificate is not None:
        context.load_cert_chain(*([certificate] if isinstance(certificate, str) else certificate))
    return context
