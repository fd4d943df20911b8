"""The address of a web server: its socket, allowed hosts, access token, and URL."""

from __future__ import annotations

import errno
import http.client
import ipaddress
import secrets
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from mdagents_llm.errors import ConfigError

PORT = 7576
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
SERVER = "mdagents-view"
"""Value of the `server` header, by which one view recognizes another."""

_TRIED = 100  # ports to try, starting at PORT, if none was requested
_ANSWERS_WITHIN = 3.0  # seconds, as on a busy machine
_ANY = ("0.0.0.0", "::")
_ELSEWHERE = {socket.AF_INET: "192.0.2.1", socket.AF_INET6: "2001:db8::1"}  # RFC 5737, RFC 3849


@dataclass(frozen=True, slots=True)
class Place:
    """A listening socket, with the hosts and the token that its URL needs."""

    socket: socket.socket
    hosts: tuple[str, ...]
    """Host names that are answered; the first is the one in the URL."""
    token: str
    """Access token; empty if only this machine can reach the socket."""

    @property
    def port(self) -> int:
        """Port that the socket listens on."""
        port: int = self.socket.getsockname()[1]
        return port

    def url(self, path: str = "") -> str:
        """Return the URL of a page, with the token if there is one."""
        query = f"?{urlencode({'token': self.token})}" if self.token else ""
        return f"http://{self.hosts[0]}:{self.port}{path or '/' * bool(query)}{query}"


def add_address_flags(parser: Any, page: str = "live view") -> None:
    """Add the flags of every program that shows pages in a browser.

    Args:
        parser: An `argparse` parser or argument group.
        page: What is shown, for the help text.
    """
    parser.add_argument("--view-port", metavar="N", type=int,
        help=f"port of the {page}; 0: any free port [{PORT}, or the next free one]")  # fmt: skip
    parser.add_argument("--view-host", metavar="HOST", default="",
        help="address to listen on; any but this machine's own requires a token "
        f"[{LOOPBACK[0]}]")  # fmt: skip
    parser.add_argument("--no-open", action="store_true", help="do not open a browser")


def listen(host: str = "", port: int | None = None, *, flag: str = "--view-port") -> Place:
    """Start listening, so that clients that connect wait until the socket is served.

    Args:
        host: Host name or address; empty for loopback only. Any other host gets a token.
        port: Port; 0 for any free one, None for the first free one from `PORT` on.
        flag: Flag that sets the port, for error messages.

    Raises:
        ConfigError: The port is taken or not allowed, or the host is not one of this machine.
    """
    host = host.strip("[]") or LOOPBACK[0]
    if port is not None and not 0 <= port < 2**16:
        raise ConfigError(f"{flag} is {port} but must be from 0 (any free port) to 65535")
    for number in range(PORT, PORT + _TRIED) if port is None else (port,):
        try:
            return _place(host, number)
        except (OSError, UnicodeError) as error:
            if not isinstance(error, OSError) or error.errno != errno.EADDRINUSE:
                cause = getattr(error, "strerror", None) or "no name of a host"
                cause = cause.partition(" (while")[0]
                raise ConfigError(f"cannot listen at {host}, port {number}: {cause}") from None
    if port is None:
        raise ConfigError(f"the ports {PORT} to {PORT + _TRIED - 1} are taken; give {flag} 0")
    otherwise = f"leave {flag} out" if flag == "--view-port" else f"give another {flag}"
    raise ConfigError(f"port {port} is taken by {_who_is_at(host, port)}; {otherwise}")


def note_of(place: Place, port: int | None) -> str:
    """Return a note if a view is not at the default port; empty if it is or a port was given."""
    if port is not None or place.port == PORT:
        return ""
    host = place.socket.getsockname()[0]
    return f"NOTE: port {PORT} is taken by {_who_is_at(host, PORT)}"


def has_screen(variables: Mapping[str, str], platform: str) -> bool:
    """Return whether the user would see a browser that is opened here.

    Args:
        variables: Environment variables.
        platform: Name of the platform, as in `sys.platform`.
    """
    if variables.get("SSH_CONNECTION") or variables.get("SSH_TTY"):
        return False  # the user's screen is on another machine
    if platform in ("darwin", "win32"):
        return True
    return bool(variables.get("DISPLAY") or variables.get("WAYLAND_DISPLAY"))


def _place(host: str, port: int) -> Place:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    family, _, _, _, address = found[0]
    given = ipaddress.ip_address(str(address[0]))
    if given.version == 6 and given.is_link_local:  # fe80::/10
        raise ConfigError(
            f"cannot listen at {host}: it is a link-local address, which browsers do not open; "
            "give another address or a name of this machine, or :: for all of them"
        )
    both = given == ipaddress.IPv6Address("::") and socket.has_dualstack_ipv6()
    listening = socket.create_server(address[:2], family=family, dualstack_ipv6=both)
    bound = listening.getsockname()[0]
    if bound in _ANY:
        names = _names_elsewhere(family)
        names += _names_elsewhere(socket.AF_INET) if both else []
        return Place(listening, (*names, *LOOPBACK), secrets.token_urlsafe())
    is_loopback = ipaddress.ip_address(bound).is_loopback
    hosts = (_in_url(host), *(LOOPBACK if is_loopback else (_in_url(bound),)))
    return Place(listening, hosts, "" if is_loopback else secrets.token_urlsafe())


def _names_elsewhere(family: int) -> list[str]:
    """Return the address and the name by which other machines may reach this one."""
    name = socket.gethostname()
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((_ELSEWHERE[socket.AddressFamily(family)], 9))  # sends nothing
        except OSError:
            return [name]  # no route
        return [_in_url(probe.getsockname()[0]), name]


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _who_is_at(host: str, port: int) -> str:
    at = LOOPBACK[0] if host in _ANY else host
    connection = http.client.HTTPConnection(at, port, timeout=_ANSWERS_WITHIN)
    try:
        connection.request("HEAD", "/")
        is_view = connection.getresponse().getheader("server") == SERVER
    except (OSError, http.client.HTTPException):
        is_view = False
    finally:
        connection.close()
    return f"another view, http://{_in_url(at)}:{port}" if is_view else "another program"
