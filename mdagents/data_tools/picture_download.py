"""Fetches the pictures that the questions of a file name by address.

    mdagents data pictures mine.jsonl

Each picture is written to `images/` beside the file, under a name made of its address, where a run
finds it; a run itself fetches nothing. `images/ADDRESSES.json` has the checksum of each. What is
there with the noted checksum is not fetched again.

A host may not send the program elsewhere: a name is resolved here, all its addresses must be
public, and the connection goes to one of these. Each redirect is checked in the same way.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import socket
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import aiohttp
import yarl
from aiohttp.abc import AbstractResolver, ResolveResult
from pydantic import BaseModel, ConfigDict, ValidationError

from mdagents.data_tools.download import utc_now
from mdagents.data_tools.fetching import sha256_of
from mdagents.datasets.picture_addresses import addresses_in
from mdagents.datasets.pictures.places import ENDINGS, IMAGES, copy_of, ending_of
from mdagents.datasets.pictures.preparing import PictureSettings, prepare_picture
from mdagents.datasets.pictures.question_picture import LARGEST_FILE, QuestionPicture
from mdagents_llm.errors import BenchError, ConfigError
from mdagents_llm.extras import check_installed, needs_extra
from mdagents_llm.files.whole_file import replace_file, writing
from mdagents_llm.terminal.command_line import Parser
from mdagents_llm.terminal.printing import fails_in_one_line, print_result
from mdagents_llm.text import counted
from mdagents_llm.web.public_address import is_public

MANIFEST = "ADDRESSES.json"
"""Name of the file with the origins of fetched pictures, in the folder of the pictures."""

DONE, FAILURES = 0, 1
"""Exit statuses: every picture is there, some are not."""

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Function that maps a host and a port to IP addresses; it raises `OSError` if there are none."""

_AT_ONCE, _AT_ONCE_PER_HOST = 4, 2
_SECONDS = 60.0  # for one picture, redirects included
_NAME = "mdagents"
"""Name by which hosts know the program: some refuse requests without one, or with a browser's."""
_MOST_REDIRECTS = 5
_REDIRECTS = (301, 302, 303, 307, 308)
_LONGEST_ADDRESS = 8192
_TYPES = ("application/octet-stream", "binary/octet-stream", "application/dicom")
"""Content types of pictures other than `image/…`."""
_CONFIG = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Origin(BaseModel):
    """Where a picture came from."""

    model_config = _CONFIG

    address: str
    """Address without its query, which may contain a key."""
    sha256: str
    bytes: int
    fetched_at: datetime


class Manifest(BaseModel):
    """Contents of `images/ADDRESSES.json`."""

    model_config = _CONFIG

    files: dict[str, Origin]
    """Name of the file -> where it came from."""


class NotFetchedError(BenchError):
    """A picture that cannot be fetched. The message is the reason alone."""


class _NotPublicError(OSError):
    """A host with an address that is not public."""


@dataclass(frozen=True, slots=True)
class Access:
    """The network as the downloader sees it."""

    is_allowed: Callable[[str], bool] = is_public
    """Whether the program may connect to an IP address."""
    resolve: Resolve | None = None
    """Function that resolves a host; None asks the system."""
    seconds: float = _SECONDS
    """Maximum time for a picture, in seconds."""
    largest: int = LARGEST_FILE
    """Maximum size of a picture, in bytes."""


class _Resolver(AbstractResolver):
    """Resolver whose results are checked before aiohttp connects to them."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        ask = self._access.resolve or _asked_system
        addresses = await ask(host, port)
        if not addresses or not all(map(self._access.is_allowed, addresses)):
            raise _NotPublicError(f"{host} is not a public host")
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
            for address in addresses
        ]

    async def close(self) -> None:
        """Release nothing."""


async def _asked_system(host: str, port: int) -> Sequence[str]:
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(one[4][0]) for one in found))


async def fetch_pictures(path: Path, access: Access = Access()) -> list[str]:
    """Fetch the pictures that a question file names by address; return a line for each failure.

    Args:
        path: Path of the file.
        access: Network.

    Raises:
        ConfigError: The file cannot be read, or a picture cannot be written.
    """
    addresses = addresses_in(path)
    folder = path.parent / IMAGES
    noted = _read_manifest(folder)
    wanted = {
        address: number
        for address, number in addresses.items()
        if not _is_there(path.parent, address, noted)
    }
    print_result(
        f"{path}: {len(addresses)} addresses, {len(addresses) - len(wanted)} fetched before"
    )
    if not wanted:
        return []
    failures: dict[str, str] = {}
    queue = list(reversed(wanted))
    of_host: dict[str, asyncio.Semaphore] = defaultdict(
        lambda: asyncio.Semaphore(_AT_ONCE_PER_HOST)
    )
    async with _session(access) as session:

        async def worker() -> None:
            while queue:
                address = queue.pop()
                try:
                    host = _checked(address, access).host or ""
                    async with of_host[host], asyncio.timeout(access.seconds):
                        content = await _content(session, address, access)
                    await asyncio.to_thread(_check, content)
                    name = _write(path.parent, address, content)
                except NotFetchedError as error:
                    failures[address] = str(error)
                except TimeoutError:
                    failures[address] = f"it takes longer than {access.seconds:g} s"
                else:
                    noted[name] = Origin(
                        address=_without_query(address),
                        sha256=hashlib.sha256(content).hexdigest(),
                        bytes=len(content),
                        fetched_at=utc_now(),
                    )

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(_AT_ONCE, len(wanted))):
                    group.create_task(worker())
        finally:
            if noted:
                note = Manifest(files=dict(sorted(noted.items())))
                replace_file(folder / MANIFEST, note.model_dump_json(indent=2).encode() + b"\n")
    return [
        f"not fetched: {_without_query(address)} (record {number}): {failures[address]}"
        for address, number in wanted.items()
        if address in failures
    ]


def _session(access: Access) -> aiohttp.ClientSession:
    connector = aiohttp.TCPConnector(
        resolver=_Resolver(access), use_dns_cache=False, limit=_AT_ONCE
    )
    return aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        trust_env=False,
        auto_decompress=False,
        headers={
            "user-agent": _NAME,
            "accept": "image/*, application/dicom",
            "accept-encoding": "identity",
        },
    )


async def _content(session: aiohttp.ClientSession, address: str, access: Access) -> bytes:
    """Return the content at an address after up to five redirects."""
    url = _checked(address, access)
    for _ in range(_MOST_REDIRECTS + 1):
        try:
            async with session.get(url, allow_redirects=False) as response:
                if response.status not in _REDIRECTS:
                    return await _body(response, access.largest)
                url = _checked(str(url.join(yarl.URL(response.headers["location"]))), access)
        except (KeyError, ValueError):
            raise NotFetchedError("it redirects to no address") from None
        except aiohttp.ClientConnectorError as error:
            if isinstance(error.os_error, _NotPublicError):
                raise NotFetchedError(_NOT_PUBLIC) from None
            raise NotFetchedError("the host cannot be reached") from None
        except (aiohttp.ClientError, OSError) as error:
            raise NotFetchedError(
                f"the host sent no whole answer ({type(error).__name__})"
            ) from None
    raise NotFetchedError(f"it redirects more than {_MOST_REDIRECTS} times")


_NOT_PUBLIC = "the host is not public; --allow-private fetches from this machine and its network"


def _checked(address: str, access: Access) -> yarl.URL:
    """Return the URL of an address after checking that it may be fetched."""
    try:
        url = yarl.URL(address)
        host = url.host
    except (ValueError, TypeError):
        raise NotFetchedError("the address is not valid") from None
    if len(address) > _LONGEST_ADDRESS or url.scheme not in ("http", "https") or not host:
        raise NotFetchedError("the address is not valid, or neither http nor https")
    if url.user is not None or url.password is not None:
        raise NotFetchedError("the address contains a user name")
    is_number = ":" in host or host.rstrip(".").rpartition(".")[2].isdigit()
    if is_number and not access.is_allowed(host):
        raise NotFetchedError(_NOT_PUBLIC)
    return url


async def _body(response: aiohttp.ClientResponse, largest: int) -> bytes:
    if response.status != 200:
        raise NotFetchedError(f"the host answered {response.status}")
    kind = response.content_type if "content-type" in response.headers else _TYPES[0]
    if not kind.startswith("image/") and kind not in _TYPES:
        raise NotFetchedError(f"the host sent {kind[:60]}, not a picture")
    packed = response.headers.get("content-encoding", "identity").strip().lower()
    if packed not in ("", "identity"):
        raise NotFetchedError("the host sent the picture packed")
    body = bytearray()
    async for chunk in response.content.iter_chunked(2**16):
        body += chunk
        if len(body) > largest:
            raise NotFetchedError(f"the picture has more than {largest:,} bytes")
    return bytes(body)


def _check(content: bytes) -> None:
    """Check that a picture can be decoded.

    Raises:
        NotFetchedError: It cannot.
    """
    if not ending_of(content):
        raise NotFetchedError("the content is not a picture in a known format")
    try:
        prepare_picture(QuestionPicture(None, content=content), PictureSettings(), "")
    except ConfigError as error:
        raise NotFetchedError(str(error)) from None


def _write(folder: Path, address: str, content: bytes) -> str:
    """Write a picture, remove an older copy in another format, and return the name of the file."""
    path = folder / f"{copy_of(address)}{ending_of(content)}"
    with writing(path, ConfigError):
        replace_file(path, content)
        for other in _copies(folder, address):
            if other != path:
                other.unlink(missing_ok=True)
    return path.name


def _copies(folder: Path, address: str) -> list[Path]:
    paths = [folder / f"{copy_of(address)}{ending}" for ending in ENDINGS]
    return [path for path in paths if path.is_file()]


def _is_there(folder: Path, address: str, noted: Mapping[str, Origin]) -> bool:
    """Return whether the only copy of an address has the noted checksum."""
    copies = _copies(folder, address)
    if len(copies) != 1 or copies[0].name not in noted:
        return False
    return sha256_of(copies[0]) == noted[copies[0].name].sha256


def _read_manifest(folder: Path) -> dict[str, Origin]:
    try:
        return dict(Manifest.model_validate_json((folder / MANIFEST).read_bytes()).files)
    except (OSError, ValidationError):
        return {}  # pictures without a note are fetched again


def _without_query(address: str) -> str:
    return address.partition("?")[0].partition("#")[0]


def _any_address(address: str) -> bool:
    return True


def _parser(program: str) -> argparse.ArgumentParser:
    parser = Parser(
        prog=program,
        description="Fetches the pictures that questions name by address, so that a run finds them "
        "beside the file.",
        epilog="Exit status: 0 every picture is there, 1 some are not, 2 usage error.",
    )
    parser.add_argument("file", metavar="FILE", type=Path, help="questions: .jsonl, .json or .csv")
    parser.add_argument("--allow-private", action="store_true",
        help="fetch from this machine and its network as well")  # fmt: skip
    return parser


@fails_in_one_line
def main(argv: Sequence[str], *, program: str = "mdagents data pictures") -> int:
    """Fetch the pictures of a question file and print what could not be fetched.

    Args:
        argv: Command-line arguments without the program's name.
        program: Program name as the user invoked it.

    Returns:
        The exit status: 0 if every picture is there, 1 if some are not, 2 (`ConfigError`) or 130.
    """
    options = _parser(program).parse_args(argv)
    with needs_extra("images", "a picture"):
        check_installed("PIL")
    try:
        access = Access(_any_address) if options.allow_private else Access()
        failures = asyncio.run(fetch_pictures(options.file, access))
    except ExceptionGroup as group:
        raise group.exceptions[0] from None
    for line in failures:
        print_result(line)
    if failures:
        left = counted(len(failures), "picture")
        print_result(f"not fetched: {left}; run the same command to try again")
    return FAILURES if failures else DONE
