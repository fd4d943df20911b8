"""Reads members of a ZIP archive within limits of size, including those packed with Zstandard.

The standard library reads Zstandard from Python 3.14 on, and bounds neither a member nor the whole.
"""

from __future__ import annotations

import os
import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from pathlib import Path

from mdagents_llm.errors import ConfigError
from mdagents_llm.extras import needs_extra
from mdagents_llm.files.regular_file import regular_file

LARGEST_MEMBER = 128 << 20
"""Maximum size of an unpacked member, in bytes."""
LARGEST_WHOLE = 16 << 30
"""Maximum size of all unpacked members, in bytes."""
MOST_EXPANSION = 250
"""Maximum size of all unpacked members, as a multiple of the file's size."""
ALWAYS_ALLOWED = 1 << 30
"""Size of all unpacked members that is allowed whatever the multiple, in bytes."""

_LOCAL_HEADER = 30  # bytes before the name of a member
_LENGTHS = struct.Struct("<HH")  # of name and extra field
_LENGTHS_AT = 26
_ENCRYPTED = 1  # bit of the flags


class _Method(IntEnum):
    """Number of a method of packing, by the ZIP format."""

    STORED = 0
    DEFLATE = 8
    ZSTANDARD = 93


Unpack = Callable[[bytes, int], bytes]
"""Unpacks data to at most the given number of bytes."""


class ZipMembers:
    """The members of a ZIP archive.

    The last of several members with the same name counts, as in every reader by name: Inspect adds
    a sample that was answered again in this way.

    Args:
        path: Path of the archive.

    Raises:
        ConfigError: The file is not a whole archive, or unpacks to more than the limits.
        OSError: The file cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            with regular_file(path) as file:
                size = os.fstat(file.fileno()).st_size
                with zipfile.ZipFile(file) as archive:
                    members = archive.infolist()
        # A damaged directory raises more than BadZipFile: of its versions, numbers and names.
        except (zipfile.BadZipFile, NotImplementedError, ValueError, struct.error):
            raise ConfigError(f"{path} is not a complete ZIP archive") from None
        self._members: Mapping[str, zipfile.ZipInfo] = {info.filename: info for info in members}
        whole = sum(info.file_size for info in self._members.values())
        if whole > min(LARGEST_WHOLE, max(ALWAYS_ALLOWED, MOST_EXPANSION * size)):
            raise ConfigError(
                f"{path} would unpack from {size:,} to {whole:,} bytes, which is too much to read"
            )

    @property
    def names(self) -> Sequence[str]:
        """Names of the members, each once."""
        return list(self._members)

    def read(self, name: str) -> bytes:
        """Return the content of a member.

        Args:
            name: One of `names`.

        Raises:
            ConfigError: The member is damaged, encrypted, too large, or packed in a way that needs
                an extra or is not supported.
            OSError: The file cannot be read.
        """
        info, where = self._members[name], f"{self._path}: {name}"
        if info.flag_bits & _ENCRYPTED:
            raise ConfigError(f"{where} is encrypted")
        if max(info.file_size, info.compress_size) > LARGEST_MEMBER:
            raise ConfigError(f"{where} has more than {LARGEST_MEMBER:,} bytes")
        unpack = self._unpacker(info.compress_type, where)
        with regular_file(self._path) as file:
            file.seek(min(max(0, info.header_offset), os.fstat(file.fileno()).st_size))
            header = file.read(_LOCAL_HEADER)
            if len(header) < _LOCAL_HEADER or not header.startswith(b"PK\x03\x04"):
                raise ConfigError(f"{where} is damaged")
            file.seek(sum(_LENGTHS.unpack_from(header, _LENGTHS_AT)), os.SEEK_CUR)
            packed = file.read(info.compress_size)
        try:
            content = unpack(packed, info.file_size + 1)
        except (zlib.error, EOFError):
            raise ConfigError(f"{where} is damaged") from None
        if len(content) != info.file_size or zlib.crc32(content) != info.CRC:
            raise ConfigError(f"{where} is damaged")
        return content

    def _unpacker(self, method: int, where: str) -> Unpack:
        """Return the function that unpacks data of a method, numbered as in the ZIP format."""
        match method:
            case _Method.STORED:
                return lambda packed, most: packed[:most]
            case _Method.DEFLATE:
                return lambda packed, most: zlib.decompressobj(-zlib.MAX_WBITS).decompress(
                    packed, most
                )
            case _Method.ZSTANDARD:
                with needs_extra("inspect", f"{self._path}, packed with Zstandard,"):
                    return _zstandard()
            case _:
                raise ConfigError(
                    f"{where} uses compression method {method}, which Inspect logs never use"
                )


def _zstandard() -> Unpack:
    from zstandard import ZstdDecompressor, ZstdError

    def unpack(packed: bytes, most: int) -> bytes:
        # Inspect writes a large member as several frames.
        try:
            with ZstdDecompressor().stream_reader(packed, read_across_frames=True) as reader:
                return reader.read(most)
        except ZstdError as error:
            raise EOFError from error

    return unpack
