"""A picture of a prompt, encoded once for all the calls that show it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class ImageDetail(StrEnum):
    """Resolution at which a model looks at a picture, for endpoints with such a setting."""

    AUTO = "auto"
    """The endpoint chooses; nothing is sent."""
    LOW = "low"
    HIGH = "high"


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture as it is sent to a model."""

    base64: str = field(repr=False)
    """Encoded file, in Base64. All calls that show the picture share this text."""
    media_type: str
    """`image/png`, `image/jpeg`, `image/webp` or `image/gif`."""
    width: int
    """Width in pixels, as sent."""
    height: int
    """Height in pixels, as sent."""
    sha256: str
    """Identity of the content in cache keys and logs: SHA-256 of the original file and of how it
    was prepared, in hex digits."""
    label: str = ""
    """Text that precedes the picture in the prompt, for example `Picture 2: lateral view`; empty
    for the only picture of a question without a caption."""
    detail: ImageDetail = ImageDetail.AUTO

    @property
    def data_uri(self) -> str:
        """Address that contains the picture: `data:image/png;base64,…`."""
        return f"data:{self.media_type};base64,{self.base64}"

    @property
    def bytes(self) -> int:
        """Size of the encoded file."""
        return len(self.base64) * 3 // 4 - self.base64[-2:].count("=")

    @property
    def summary(self) -> str:
        """Description for logs, without the content: identity, type and size."""
        size = f"{self.width}x{self.height}, {self.bytes:,} bytes"
        return f"[picture {self.sha256}: {self.media_type}, {size}]"

    @property
    def identity(self) -> tuple[str, str, str]:
        """Everything about the picture that a reply depends on: content, label and detail."""
        return self.sha256, self.label, self.detail.value
