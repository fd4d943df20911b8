"""Downloads the published files of a data set to ``data/{name}/``.

    mdagents data download medqa

Every downloaded file is pinned to a commit and a SHA-256 (``sources.py``). It is downloaded to a
staging folder, verified, converted to a question file if published in another form, and only then
moved into place: ``data/{name}/`` never holds a partial file or a file of another version. Its
``SOURCE.json`` records the origin of each file.

A file already in place with the right SHA-256 is not downloaded again. A file that is kept as
published may come from anywhere: without network access, copy it into place by hand and run the
same command to verify it. If a connection to the Hub breaks, huggingface_hub resumes the download
(with a Range request once the first 10 MB are on disk); after a failed run, completed files are
kept.

    mdagents data download medexqa --from test/*.tsv

builds the data set from user-supplied files in their published form. Their checksums are not
verified, and `SOURCE.json` does not claim so.

The pictures of a data set are in `images/` beside its questions, each once, named by its content.
Their downloads are large: what is there already of a download that failed is kept in `.download/`,
and running the command again resumes it.
"""

from __future__ import annotations

import argparse
import errno
import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path
from typing import NoReturn

from filelock import FileLock, Timeout

from mdagents.data_tools.fetching import fetch, sha256_of
from mdagents.data_tools.question_files import Made, as_published, make_questions
from mdagents.datasets.conversion import rows_by_hand
from mdagents.datasets.medmcqa import Counting
from mdagents.datasets.pictures.files import PictureFolder
from mdagents.datasets.source_note import (
    NOTE,
    PLACED_BY_HAND,
    FileOrigin,
    SourceNote,
    Upstream,
    read_note,
)
from mdagents.datasets.sources import BY_HAND, SOURCES, About, PinnedFile, Source
from mdagents.settings import data_dir
from mdagents_llm.errors import ConfigError
from mdagents_llm.terminal.command_line import Parser, flags_in
from mdagents_llm.terminal.did_you_mean import did_you_mean
from mdagents_llm.terminal.printing import fails_in_one_line, print_result

_PUBLISHED = "upstream-"
"""Beginning of the names of folders in which published files are staged."""


def utc_now() -> datetime:
    """Return the current UTC date and time, truncated to seconds."""
    return datetime.now(UTC).replace(microsecond=0)


class Staging:
    """A temporary folder on the volume of a data set, created on first use.

    Args:
        folder: Folder of the data set.
        opened: Exit stack that removes the temporary folder.
        is_resumed: Whether what was downloaded is kept after an error, for the next download.
    """

    def __init__(self, folder: Path, opened: ExitStack, *, is_resumed: bool = False) -> None:
        self._folder = folder
        self._opened = opened
        self._is_resumed = is_resumed
        self._fetched: dict[PinnedFile, Path] = {}

    @cached_property
    def path(self) -> Path:
        """Path of the temporary folder."""
        opening = _staging_folder(self._folder, is_resumed=self._is_resumed)
        return self._opened.enter_context(opening)

    def fetch(self, file: PinnedFile) -> Path:
        """Return the path of a published file, downloaded and verified on first use.

        Raises:
            ConfigError: The file cannot be downloaded, or its checksum is wrong.
        """
        if file not in self._fetched:
            print_result(f"fetching {file.repo_id}/{file.path_in_repo}")
            name = hashlib.sha256(repr(file).encode()).hexdigest()[:16]
            folder = self.path / f"{_PUBLISHED}{name}"
            folder.mkdir(exist_ok=True)
            self._fetched[file] = fetch(file, folder)
        return self._fetched[file]

    def with_checksums(self, upstream: tuple[Upstream, ...]) -> tuple[Upstream, ...]:
        """Return published files with the SHA-256 of those that have no published one."""
        own = {(file.repo_id, file.path_in_repo): path for file, path in self._fetched.items()}
        return tuple(
            file
            if file.sha256
            else file.model_copy(update={"sha256": sha256_of(own[file.repo, file.path])})
            for file in upstream
        )


@contextmanager
def _staging_folder(folder: Path, *, is_resumed: bool) -> Iterator[Path]:
    """Yield a folder inside `folder`, and remove it, and `folder` too if new and still empty.

    After an error, published files stay in it if `is_resumed`. A process that was killed leaves it
    for the next one.

    Raises:
        ConfigError: Another process downloads the same data set.
    """
    is_new = not folder.exists()
    staging = folder / ".download"
    staging.mkdir(parents=True, exist_ok=True)
    lock = FileLock(staging / "lock", timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise ConfigError(f"another process is downloading to {folder}; wait for it") from None
    is_done = False
    try:
        yield staging
        is_done = True
    finally:
        published = staging.glob(f"{_PUBLISHED}*/**/*")
        if is_done or not is_resumed or not any(map(Path.is_file, published)):
            shutil.rmtree(staging, ignore_errors=True)
        lock.release()
        for unused in [staging, folder] if is_new else [staging]:
            with suppress(OSError):  # it is not empty, or gone
                unused.rmdir()


@dataclass(frozen=True, slots=True)
class Wanted:
    """A file that a data set should have: its path, and how to build it."""

    path: Path
    make: Callable[[Staging], Made]
    upstream: tuple[Upstream, ...]
    about: About
    sha256: str | None = None
    """SHA-256 of the file; None when none is published for it."""
    cop_from: int | None = None
    """Value of MedMCQA's field `cop` for the first option, if the user stated it, else None."""
    has_pictures: bool = False
    """Whether the questions have pictures, in `images/` beside the file."""

    @property
    def is_by_hand(self) -> bool:
        """Whether the file is built from user-supplied files, whose checksums are not verified."""
        return any(file.host == PLACED_BY_HAND for file in self.upstream)

    @property
    def compared(self) -> str:
        """Message on which checksum was verified, if any."""
        if self.sha256 is not None:
            return "checksum verified"
        if self.is_by_hand:
            return "checksum not verified (local file)"
        if any(file.as_reported for file in self.upstream):
            return "made from files with the checksums that the Hub reports"
        return "made from files with verified checksums"


def _fetched(source: Source, folder: Path) -> Wanted:
    """Return the description of a file that is built from pinned files."""
    files = source.files if source.pictures is not None else source.files[:1]
    repository = source.files[0].repo_id
    origin = _origin([f"{repository}/{file.path_in_repo}" for file in files], repository)

    def make(staging: Staging) -> Made:
        paths = [staging.fetch(file) for file in source.files]
        target = staging.path / source.target
        if source.pictures is not None:
            records = source.pictures(paths, PictureFolder(folder))
            made = make_questions(records, origin, target, folder=folder)
        elif source.convert is None:
            made = as_published(paths[0], origin)
        else:
            made = make_questions(source.convert(paths), origin, target, counting=source.counting)
        if source.records is not None and made.published != source.records:
            raise ConfigError(f"{origin} has {made.published} records, expected {source.records}")
        return made

    upstream = tuple(
        Upstream(
            host=file.host,
            repo=file.repo_id,
            revision=file.revision,
            path=file.path_in_repo,
            sha256=file.sha256,
            as_reported=not file.sha256,
        )
        for file in source.files
    )
    is_kept = source.convert is None and source.pictures is None
    return Wanted(
        folder / source.target,
        make,
        upstream,
        source.about,
        source.files[0].sha256 if is_kept else None,
        has_pictures=source.pictures is not None,
    )


def _origin(files: Sequence[str], folder: str) -> str:
    """Return the name of the files with questions, for messages: archives hold their pictures."""
    first, *others = [file for file in files if not file.lower().endswith(".zip")] or files
    return f"{folder}/*{Path(first).suffix}" if others else first


def _placed_by_hand(
    name: str,
    files: Sequence[Path],
    split: str,
    cop_from: int | None,
    folder: Path,
    catalogue: Mapping[str, tuple[Source, ...]],
) -> Wanted:
    """Return the description of a file that is built from user-supplied files."""
    for file in files:
        if not file.is_file():
            raise ConfigError(f"there is no file {file}; check --from")
    by_hand = BY_HAND.get(name)
    about = by_hand.about if by_hand else catalogue[name][0].about
    only = {
        field: value.format(split=split)
        for field, value in (by_hand.only if by_hand else {}).items()
    }
    said = None if cop_from is None else Counting(cop_from, "as --cop-from says")
    with_pictures = catalogue[name][0].pictures if name in catalogue else None

    origin = _origin([str(file) for file in files], str(files[0].parent))

    def make(staging: Staging) -> Made:
        target = staging.path / f"{split}.jsonl"
        if with_pictures is not None:
            records = with_pictures(files, PictureFolder(folder))
            return make_questions(records, origin, target, folder=folder)
        return make_questions(rows_by_hand(files), origin, target, counting=said, only=only)

    upstream = tuple(
        Upstream(host=PLACED_BY_HAND, repo="", revision="", path=file.name, sha256=sha256_of(file))
        for file in files
    )
    return Wanted(
        folder / f"{split}.jsonl",
        make,
        upstream,
        about,
        cop_from=cop_from,
        has_pictures=with_pictures is not None,
    )


def bring(
    wanted: Wanted,
    known: FileOrigin | None,
    staging: Staging,
    note: Callable[[FileOrigin], None],
    *,
    force: bool,
    now: datetime,
) -> None:
    """Ensure that a file is in place, and note its origin.

    Args:
        wanted: Description of the file.
        known: Origin noted for the file earlier; None without one.
        staging: Temporary folder in which the file is built.
        note: Function that writes the origin of the file. It is called before the file is moved
            into place: an interrupted command knows its own file when it is called again.
        force: Whether to replace an existing file with another SHA-256.
        now: Current time.

    Raises:
        ConfigError: The file is missing and cannot be built, or a different file is in its place.
    """
    path = wanted.path
    if known is not None and (
        not _is_same(known.upstream, wanted.upstream)
        or wanted.cop_from not in (None, known.cop_from)
    ):
        known = None
    expected = wanted.sha256 or (known.sha256 if known else None)
    present = sha256_of(path) if path.exists() else None
    if present is not None and present == expected and not _lost_pictures(wanted):
        same = wanted.compared if wanted.sha256 else f"unchanged since; {wanted.compared}"
        print_result(f"{path}: already there, {same}")
        if known is None or known.sha256 != present:
            note(_origin_of(as_published(path, str(path)), wanted, wanted.upstream, now))
    elif present is not None and present != expected and not force:
        instead = f"expected {expected}" if expected else "and not made by this command"
        raise ConfigError(
            f"{path} is there with SHA-256 {present}, {instead}: "
            "move it away, or replace it with --force"
        )
    else:
        made = wanted.make(staging)
        note(_origin_of(made, wanted, staging.with_checksums(wanted.upstream), now))
        made.path.replace(path)
        for line in made.left_out:
            print_result(f"left out: {line}")
        print_result(f"{path}: {made.records} records, {wanted.compared}")
        if made.counting:
            print_result(f"{path}: {made.counting}")


def _origin_of(
    made: Made, wanted: Wanted, upstream: tuple[Upstream, ...], now: datetime
) -> FileOrigin:
    """Return where a file of questions comes from, and what was left out of it."""
    return FileOrigin(
        sha256=sha256_of(made.path),
        bytes=made.path.stat().st_size,
        records=made.records,
        left_out=made.not_used,
        upstream=upstream,
        verified_at=None if wanted.is_by_hand else now,
        licence=wanted.about.licence,
        citation=wanted.about.citation,
        cop_from=made.counting.first if made.counting else None,
        pictures=len(_pictures_named(made.path)) if wanted.has_pictures else None,
    )


def _is_same(known: tuple[Upstream, ...], wanted: tuple[Upstream, ...]) -> bool:
    """Return whether files are the wanted ones; one without a published SHA-256 may have any."""
    return len(known) == len(wanted) and all(
        ours.model_copy(update={"sha256": theirs.sha256 or ours.sha256}) == ours
        and ours.model_copy(update={"sha256": ""}) == theirs.model_copy(update={"sha256": ""})
        for ours, theirs in zip(known, wanted, strict=True)
    )


def _pictures_named(path: Path) -> set[str]:
    """Return the paths of pictures that the questions of a file name."""
    with path.open("rb") as file:
        return {name for line in file for name in json.loads(line).get("images", ())}


def _lost_pictures(wanted: Wanted) -> list[str]:
    """Return the paths of pictures that are not there, of a file that is."""
    if not wanted.has_pictures:
        return []
    folder = wanted.path.parent
    return [name for name in _pictures_named(wanted.path) if not (folder / name).is_file()]


def download(
    name: str,
    data_dir: Path,
    *,
    catalogue: Mapping[str, tuple[Source, ...]] = SOURCES,
    by_hand: Sequence[Path] = (),
    split: str = "test",
    cop_from: int | None = None,
    force: bool = False,
    now: Callable[[], datetime] = utc_now,
) -> None:
    """Bring ``data_dir/name`` up to date; print the actions, the license and the citation.

    Args:
        name: Name of a data set in `catalogue` or `BY_HAND`, case-insensitive.
        data_dir: Folder of all data sets.
        catalogue: Files of each downloadable data set.
        by_hand: User-supplied files to read with `rows_by_hand` instead of downloading.
        split: Split that the user-supplied files hold: `test` or `train`.
        cop_from: Value of MedMCQA's field `cop` for the first option in them: 0 or 1; None detects
            it from the files.
        force: Whether to replace an existing file with another SHA-256.
        now: Function that returns the current time.

    Raises:
        ConfigError: A file cannot be downloaded, verified or moved into place. Existing files are
            unchanged.
    """
    if name.lower() in catalogue or name.lower() in BY_HAND:
        name = name.lower()
    folder = data_dir / name
    try:
        if by_hand:
            _check_name(name, catalogue)
            wanted = [_placed_by_hand(name, by_hand, split, cop_from, folder, catalogue)]
        elif cop_from is not None:
            raise ConfigError("--cop-from is about the file that --from names; give both")
        else:
            wanted = [_fetched(source, folder) for source in _sources(name, folder, catalogue)]
        noted = read_note(folder)
        with ExitStack() as opened:
            is_resumed = any(file.has_pictures for file in wanted)
            staging = Staging(folder, opened, is_resumed=is_resumed)

            def note(file: Wanted, origin: FileOrigin) -> None:
                noted[file.path.name] = origin
                _write_note(SourceNote(dataset=name, files=noted), folder, staging)

            for file in wanted:
                before = noted.get(file.path.name)
                bring(file, before, staging, partial(note, file), force=force, now=now())
    except OSError as error:
        _refuse(error, folder)
    for about in dict.fromkeys(file.about for file in wanted):
        print_result(f"License: {about.licence}\nCitation: {about.citation}")
        if about.note:
            print_result(f"Note: {about.note}")


def _sources(
    name: str, folder: Path, catalogue: Mapping[str, tuple[Source, ...]]
) -> tuple[Source, ...]:
    _check_name(name, catalogue)
    if name in catalogue:
        return catalogue[name]
    instructions = BY_HAND[name].instructions.format(folder=folder)
    raise ConfigError(
        f"{name} cannot be downloaded automatically, because no SHA-256 is published for its "
        f"files: {instructions}"
    )


def _check_name(name: str, catalogue: Mapping[str, tuple[Source, ...]]) -> None:
    if name not in catalogue and name not in BY_HAND:
        known = sorted({*catalogue, *BY_HAND})
        raise ConfigError(
            f"unknown data set {name!r}; known: {', '.join(known)}{did_you_mean(name, known)}"
        )


def _write_note(note: SourceNote, folder: Path, staging: Staging) -> None:
    draft = staging.path / NOTE
    draft.write_text(note.model_dump_json(indent=2) + "\n", encoding="utf-8")
    draft.replace(folder / NOTE)


def _refuse(error: OSError, folder: Path) -> NoReturn:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        raise ConfigError(f"disk full while writing to {folder}") from error
    raise ConfigError(
        f"cannot use {error.filename or folder}: {error.strerror or error}; "
        "choose another folder with --data-dir"
    ) from error


def _parser(program: str, catalogue: Mapping[str, tuple[Source, ...]]) -> argparse.ArgumentParser:
    parser = Parser(
        prog=program,
        description="Fetches the real files of a data set, pinned and checked.",
        epilog="HF_ENDPOINT and GITHUB_RAW_ENDPOINT name mirrors to download from.",
    )
    add = parser.add_argument
    names = ", ".join([*catalogue, *BY_HAND])
    add("name", metavar="NAME", help=f"data set: {names}")
    add("--data-dir", type=Path, default=Path(data_dir()), metavar="DIR",
        help="folder of all data sets [data]")  # fmt: skip
    add("--from", dest="by_hand", type=Path, metavar="FILE", nargs="+", default=[],
        help="convert a published file that you already have: "
        ".jsonl, .csv, .tsv or .parquet, and .zip for pictures")  # fmt: skip
    add("--split", choices=["test", "train"], default="test",
        help="split to which that file belongs [test]")  # fmt: skip
    add("--cop-from", type=int, choices=[0, 1],
        help="number of the first option in 'cop', for a file of MedMCQA that does not show it"
        )  # fmt: skip
    add("--force", action="store_true", help="overwrite an existing file whose SHA-256 differs")
    return parser


@fails_in_one_line
def main(
    argv: Sequence[str],
    *,
    program: str = "mdagents data download",
    catalogue: Mapping[str, tuple[Source, ...]] = SOURCES,
    now: Callable[[], datetime] = utc_now,
) -> int:
    """Bring a data set up to date.

    Args:
        argv: Command-line arguments without the program's name.
        program: Program name as the user invoked it.
        catalogue: Files of each downloadable data set.
        now: Function that returns the current time.

    Returns:
        The exit status: 0, 2 (`ConfigError`) or 130.
    """
    options = _parser(program, catalogue).parse_args(argv)
    if "--split" in flags_in(argv) and not options.by_hand:
        raise ConfigError("--split says what the file of --from is; give both, or leave it out")
    download(
        options.name,
        options.data_dir,
        catalogue=catalogue,
        by_hand=options.by_hand,
        split=options.split,
        cop_from=options.cop_from,
        force=options.force,
        now=now,
    )
    return 0
