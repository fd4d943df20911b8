"""Small files in the forms in which data sets with pictures are published."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from PIL import Image


def picture(shade: int = 0, *, form: str = "PNG", mode: str = "RGB") -> bytes:
    """A picture of one color; each shade is another picture."""
    out = io.BytesIO()
    Image.new("RGB", (8, 6), (shade, 0, 0)).convert(mode).save(out, form)
    return out.getvalue()


def parquet(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    """A Parquet file whose pictures are Hugging Face's structs of bytes and a path."""
    import pyarrow as pa
    from pyarrow import parquet as pq

    image = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    names = list(rows[0])
    columns = {
        name: pa.array(
            [row[name] for row in rows], image if name.startswith("image") else pa.string()
        )
        for name in names
    }
    pq.write_table(pa.table(columns), path, row_group_size=2)
    return path


def image(content: bytes | None, path: str | None = None) -> dict[str, Any]:
    return {"bytes": content, "path": path}


def archive(path: Path, members: Mapping[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as target:
        for name, content in members.items():
            target.writestr(name, content)
    return path


def table(path: Path, rows: Sequence[Mapping[str, str]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def listed(path: Path, records: Sequence[Mapping[str, Any]]) -> Path:
    path.write_text(json.dumps(records), encoding="utf-8")
    return path
