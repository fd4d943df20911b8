"""Checks the pictures of selected questions before a run starts, on their headers alone."""

from __future__ import annotations

from collections.abc import Sequence

from mdagents.datasets.dataset import Dataset, IndexEntry
from mdagents.datasets.record_lines import place
from mdagents_llm.errors import ConfigError


def check_pictures(dataset: Dataset, entries: Sequence[IndexEntry]) -> list[str]:
    """Check that the pictures of questions exist, and that their headers are those of pictures.

    Pillow is not imported if no question has a picture.

    Args:
        dataset: Data set of the questions.
        entries: Selected questions.

    Returns:
        Notes for the user, one sentence each.

    Raises:
        ConfigError: A picture cannot be sent; the message names the first question with one.
    """
    pictured = [entry for entry in entries if entry.pictures]
    if not pictured:
        return []
    # Pillow and pydicom are for runs with pictures alone.
    from mdagents.datasets.dicom import DicomPicture
    from mdagents.datasets.picture_decoding import open_picture

    annotated = []
    refused: list[tuple[IndexEntry, ConfigError]] = []
    for entry in pictured:
        try:
            for picture in dataset.load(entry).pictures:
                opened = open_picture(picture.read(), picture.place)
                if isinstance(opened, DicomPicture) and opened.is_annotated:
                    annotated.append(entry.id)
        except ConfigError as error:
            refused.append((entry, error))
    if refused:
        entry, reason = refused[0]
        raise ConfigError(
            f"{len(refused)} of the {len(entries)} questions have a picture that cannot be sent "
            f"(first: {place(dataset.path, entry.line)}, id {entry.id}): {reason}"
        )
    if not annotated:
        return []
    return [
        f"{len(set(annotated))} of the {len(entries)} questions have a DICOM picture with burnt-in "
        f"annotations, which may be a patient's name (first: {annotated[0]})."
    ]
