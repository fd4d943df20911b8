"""A server with TLS on loopback that answers as it is told to, and a network that leads to it.

To the product it is a server of the public internet: the addresses of names are made up, and a
connection to a public address ends here.
"""

from __future__ import annotations

import asyncio
import datetime
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from demos.medagen.fetch import Dial, Resolve, Streams

PUBLIC = "93.184.215.14"
HOSTS = ("pictures.example", "other.example", "xn--bcher-kva.example", "rebound.example")

Answer = Callable[[asyncio.StreamWriter], Awaitable[None]]


def certificate(folder: Path) -> Path:
    """Make a certificate for the hosts, signed by itself; return its file, with the key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, HOSTS[0])])
    now = datetime.datetime.now(datetime.UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(list(map(x509.DNSName, HOSTS))), critical=False)
        .sign(key, hashes.SHA256())
    )
    file = folder / "server.pem"
    file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + signed.public_bytes(serialization.Encoding.PEM)
    )
    return file


class Network:
    """What the product sees of the internet."""

    def __init__(self, port: int, trusted: ssl.SSLContext) -> None:
        self.names: dict[str, list[list[str]]] = {}
        """Host -> its addresses at each time that they are asked for; the last stays."""
        self.dialled: list[str] = []
        """Addresses that were connected to."""
        self.requests: list[str] = []
        """First lines and headers of requests."""
        self.trusted = trusted
        self._port = port

    @property
    def resolve(self) -> Resolve:
        """Finds the addresses of names that were set, else of a public one."""

        async def resolve(host: str) -> Sequence[str]:
            times = self.names.get(host, [[PUBLIC]])
            return times.pop(0) if len(times) > 1 else times[0]

        return resolve

    @property
    def dial(self) -> Dial:
        """Connects to the server, whatever the address."""

        async def dial(address: str, host: str, context: ssl.SSLContext) -> Streams:
            self.dialled.append(address)
            return await asyncio.open_connection(
                "127.0.0.1", self._port, ssl=context, server_hostname=host
            )

        return dial


@asynccontextmanager
async def network(file: Path, answers: Mapping[str, Answer]) -> AsyncIterator[Network]:
    """Serve answers, by path."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            there.requests.append(head)
            path = head.split(" ")[1].partition("?")[0]
            await answers[path](writer)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # it was cut
        finally:
            writer.transport.abort() if writer.transport.is_closing() else writer.close()

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(file)
    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    there = Network(
        server.sockets[0].getsockname()[1], ssl.create_default_context(cafile=str(file))
    )
    try:
        yield there
    finally:
        server.close()
        await asyncio.sleep(0)


def body(content: bytes, *headers: str, status: str = "200 OK") -> Answer:
    """Return an answer with a body."""

    async def answer(writer: asyncio.StreamWriter) -> None:
        lines = [f"HTTP/1.1 {status}", f"content-length: {len(content)}", *headers, "", ""]
        writer.write("\r\n".join(lines).encode() + content)

    return answer


def raw(content: bytes) -> Answer:
    """Return an answer that is just these bytes."""

    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(content)

    return answer
