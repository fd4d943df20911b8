"""The pictures of a run: checked before its first call, then prepared question by question."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from mdagents.datasets.dataset import Dataset, IndexEntry
from mdagents.datasets.picture_checks import check_pictures
from mdagents.datasets.pictures.preparing import PictureSettings, prepare_picture
from mdagents.datasets.pictures.question_picture import QuestionPicture
from mdagents.datasets.questions import Question
from mdagents.records.pictures import keep_picture, picture_name
from mdagents.runs.flags.picture_flags import Images, PictureFlags
from mdagents_llm.errors import ConfigError, PictureError, StorageError, is_debugging
from mdagents_llm.files.in_thread import InThread
from mdagents_llm.pictures import Picture

_AT_ONCE = 4
"""Maximum number of questions whose pictures are prepared at a time; each may take 100 MB."""
_PATIENCE = 60.0
"""Maximum seconds to prepare the pictures of a question, for example from a network drive."""

Place = tuple[Path | None, str]
"""Location of a picture: its file, and its name within an archive."""


@dataclass(frozen=True, slots=True)
class PlannedPictures:
    """The pictures of the selected questions, as they are before the first call."""

    questions: int = 0
    """Number of selected questions with pictures."""
    contents: Mapping[Place, str] = field(default_factory=dict)
    """Location -> SHA-256 of the picture's content; empty for `--images drop`."""
    sha256: str = ""
    """SHA-256 over the questions' ids and the contents of their pictures; empty where none are
    shown."""
    notes: Sequence[str] = ()
    """Notes on the pictures for the user, one sentence each."""


NO_PICTURES = PlannedPictures()
"""Pictures of a run whose questions have none."""


def plan_pictures(
    dataset: Dataset, entries: Sequence[IndexEntry], flags: PictureFlags
) -> PlannedPictures:
    """Read the pictures of the selected questions, unless they are not shown.

    Raises:
        ConfigError: A picture is missing or cannot be read.
    """
    pictured = [entry for entry in entries if entry.pictures]
    if not pictured or flags.images is Images.DROP:
        return PlannedPictures(len(pictured))
    try:
        checked = check_pictures(dataset, entries)
    except ConfigError as error:
        raise ConfigError(
            f"{error}; --skip-pictures leaves questions with a picture out, and --images drop asks "
            "them without it"
        ) from error
    contents = {
        (one.picture.file, one.picture.member): one.sha256
        for pictures in checked.questions.values()
        for one in pictures
    }
    lines = [
        "\t".join([id_, *(one.sha256 for one in pictures)])
        for id_, pictures in checked.questions.items()
    ]
    whole = hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()
    return PlannedPictures(len(pictured), contents, whole, checked.notes)


class RunPictures:
    """Prepares pictures in threads, a few questions at a time, and keeps copies of them.

    Args:
        flags: How pictures are shown.
        planned: Pictures as the plan found them; one that has changed since is not shown.
        folder: Folder of the run for the copies; None: no copy is kept.
        private: Whether only the owner can read the copies.
    """

    def __init__(
        self,
        flags: PictureFlags,
        planned: PlannedPictures = NO_PICTURES,
        folder: Path | None = None,
        *,
        private: bool = False,
    ) -> None:
        self._flags = flags
        self._planned = planned
        self._folder = folder
        self._private = private
        self._room = asyncio.Semaphore(_AT_ONCE)
        self._keeping = InThread()

    async def of(self, question: Question) -> tuple[Picture, ...]:
        """Return the pictures of a question as its agents see them; a copy of each is kept.

        Raises:
            PictureError: A picture cannot be shown.
            StorageError: A copy cannot be written.
        """
        if not question.pictures or self._flags.images is Images.DROP:
            return ()
        async with self._room:
            try:
                async with asyncio.timeout(_PATIENCE):
                    pictures = await asyncio.to_thread(self._prepare, question)
            except TimeoutError:
                raise PictureError(f"its pictures were not read within {_PATIENCE:g} s") from None
        if self._folder is not None:
            await self._keeping.call(partial(self._keep, self._folder, pictures))
        return pictures

    def _prepare(self, question: Question) -> tuple[Picture, ...]:
        settings = PictureSettings(self._flags.image_max_pixels, self._flags.image_detail)
        return tuple(
            self._prepared(picture, settings, label, picture_name(picture, number))
            for number, (picture, label) in enumerate(
                zip(question.pictures, question.labels(), strict=True), start=1
            )
        )

    def _prepared(
        self, picture: QuestionPicture, settings: PictureSettings, label: str, name: str
    ) -> Picture:
        try:
            content = picture.read()
            planned = self._planned.contents.get((picture.file, picture.member))
            if planned not in (None, hashlib.sha256(content).hexdigest()):
                raise PictureError(f"the picture {name} was changed while it was in use")
            # What was compared is what is shown: the file is not read twice.
            read = replace(picture, file=None, member="", content=content)
            return prepare_picture(read, settings, label)
        except ConfigError as error:
            why = str(error).replace(picture.place, name).replace("in the record", name)
            raise PictureError(f"a picture cannot be shown: {why}") from error
        except PictureError:
            raise
        except Exception as error:  # whatever a decoder raises costs the question
            if is_debugging():
                raise
            raise PictureError(
                f"the picture {name} cannot be shown: unexpected {type(error).__name__}"
            ) from error

    def _keep(self, folder: Path, pictures: Sequence[Picture]) -> None:
        try:
            for picture in pictures:
                keep_picture(folder, picture, private=self._private)
        except OSError as error:
            raise StorageError(
                f"cannot write to {folder}: {error.strerror}; what is finished is kept"
            ) from error
