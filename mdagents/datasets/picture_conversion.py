"""Reads questions with pictures from the files in which data sets are published.

Each function yields records in a form that `parse_question` reads, whose field `images` has paths
relative to the folder of the data set. A yes/no question becomes one with the options yes and no;
a question without options is left out, and so is one whose picture is missing.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mdagents.datasets.conversion import LeftOut, Record
from mdagents.datasets.parquet_rows import parquet_records
from mdagents.datasets.pictures.files import NoPictureError, PictureArchive, PictureFolder
from mdagents.datasets.questions import LETTERS
from mdagents.datasets.record_lines import ending, read_lines, table_rows
from mdagents_llm.errors import ConfigError
from mdagents_llm.files.json_text import load_json
from mdagents_llm.text import counted

PictureRecords = Iterator[Record]
Convert = Callable[[Sequence[Path], PictureFolder], PictureRecords]
"""Function that reads the questions of a data set from its files, and keeps their pictures."""

OPEN_ANSWER = LeftOut("the answer is open: there are no options")
YES_NO = ("yes", "no")
_MARK = re.compile(r"<image (\d+)>")
_CHOICE = re.compile(r"\s*([A-J])\s*[:.)]\s*(.*)", re.DOTALL)


def yes_no_rows(files: Sequence[Path], pictures: PictureFolder) -> PictureRecords:
    """Yield the yes/no questions of Parquet files with `image`, `question` and `answer`.

    VQA-RAD and PathVQA: https://huggingface.co/datasets/flaviagiammarino/vqa-rad and path-vqa.
    """
    for number, row in enumerate(_rows(files)):
        fields = {"id": f"row-{number}", "question": row.get("question")}
        yield _yes_no(fields, row.get("answer"), pictures, [_content(row.get("image"))])


def slake(files: Sequence[Path], pictures: PictureFolder) -> PictureRecords:
    """Yield SLAKE's English yes/no questions.

    Source: https://huggingface.co/datasets/BoKelvin/SLAKE

    Args:
        files: `imgs.zip`, and a file with a list of questions.
        pictures: Folder for the pictures.
    """
    archive, path = _archive_and_questions(files)
    for record in _list_of(path.read_bytes(), str(path)):
        if record.get("q_lang", "en") != "en":
            yield LeftOut("it is not in English")
            continue
        fields = {
            "id": record.get("qid"),
            "question": record.get("question"),
            "modality": record.get("modality"),
            "location": record.get("location"),
        }
        contents = archive.contents(record.get("img_name"))
        yield _yes_no(fields, record.get("answer"), pictures, contents)


def pmc_vqa(files: Sequence[Path], pictures: PictureFolder) -> PictureRecords:
    """Yield PMC-VQA's questions, whose options have their letters in front.

    Source: https://huggingface.co/datasets/RadGenome/PMC-VQA

    Args:
        files: The archive with the pictures, and a table of questions.
        pictures: Folder for the pictures.
    """
    archive, path = _archive_and_questions(files)
    for number, (_, row) in enumerate(table_rows(path)):
        row = {name.strip().casefold(): text.strip() for name, text in row.items()}
        options = {
            letter: _without_letter(row.get(f"choice {letter.lower()}", ""), letter)
            for letter in "ABCD"
        }
        fields = {"id": f"row-{number}", "question": row.get("question"), "options": options}
        if label := row.get("answer_label"):
            fields["answer_idx"] = label
        else:
            fields["answer"] = row.get("answer")
        yield _kept(fields, pictures, archive.contents(row.get("figure_path")))


def medxpertqa_mm(files: Sequence[Path], pictures: PictureFolder) -> PictureRecords:
    """Yield MedXpertQA's questions with pictures.

    Source: https://huggingface.co/datasets/TsinghuaC3I/MedXpertQA

    Args:
        files: `images.zip`, and a file with a question a line.
        pictures: Folder for the pictures.
    """
    archive, path = _archive_and_questions(files)
    for _, number, line in read_lines(path):
        if not line.strip():
            yield line  # numbers of records are those of lines
            continue
        record = load_json(line, f"{path} line {number}")
        names = record.get("images") if isinstance(record, dict) else None
        if not isinstance(names, list) or not names:
            yield LeftOut("its picture is missing")
            continue
        yield _kept(record, pictures, archive.contents(*names))


def omnimedvqa(files: Sequence[Path], pictures: PictureFolder) -> PictureRecords:
    """Yield the questions of OmniMedVQA's open part.

    Source: https://huggingface.co/datasets/foreverbeliever/OmniMedVQA

    Args:
        files: `OmniMedVQA.zip`, with the questions and the pictures.
        pictures: Folder for the pictures.
    """
    archive, others = _archive_and_others(files)
    if others:
        raise ConfigError(f"the questions are in the .zip archive; leave {others[0]} out of --from")
    seen: set[str] = set()
    for name, content in archive.files("open-access", ".json"):
        for number, record in enumerate(_list_of(content, name)):
            options = _filled(record.get(f"option_{letter}") for letter in LETTERS)
            id_ = str(record.get("question_id") or f"{Path(name).stem}-{number}")
            if id_ in seen:
                id_ = f"{Path(name).stem}-{number}"
            seen.add(id_)
            fields = {
                "id": id_,
                "question": record.get("question"),
                "options": options,
                "answer": record.get("gt_answer"),
                "dataset": record.get("dataset"),
                "modality": record.get("modality_type"),
            }
            if len(options) < 2:
                yield OPEN_ANSWER
            else:
                yield _kept(fields, pictures, archive.contents(record.get("image_path")))


def mmmu(files: Sequence[Path], pictures: PictureFolder) -> PictureRecords:
    """Yield MMMU's multiple-choice questions, with up to 7 pictures and marks where they belong.

    Source: https://huggingface.co/datasets/MMMU/MMMU

    Args:
        files: Parquet files, one for each subject.
        pictures: Folder for the pictures.
    """
    for row in _rows(files):
        options = _listed(row.get("options"))
        answer = row.get("answer")
        if row.get("question_type", "multiple-choice") != "multiple-choice" or len(options) < 2:
            yield OPEN_ANSWER
        elif len(options) > len(LETTERS):
            yield LeftOut(f"it has more than {len(LETTERS)} options")
        elif answer in (None, "", "?"):
            yield LeftOut("its answer is withheld")
        else:
            yield _marked(row, options, pictures)


def _marked(
    row: Mapping[str, Any], options: Sequence[str], pictures: PictureFolder
) -> dict[str, Any] | LeftOut:
    """Return a record of MMMU, its marks numbered like its pictures.

    Pictures without a mark belong to the explanation, unless there is no mark at all.
    """
    contents = {number: _content(row.get(f"image_{number}")) for number in range(1, 8)}
    texts = [str(row.get("question") or ""), *options]
    marked = {int(mark) for text in texts for mark in _MARK.findall(text)}
    there = sorted(marked or (number for number, content in contents.items() if content))
    if not all(map(contents.get, there)):
        return LeftOut("its picture is missing")
    places = {str(number): place for place, number in enumerate(there, start=1)}
    question, *options = (
        _MARK.sub(lambda mark: f"<image {places[mark[1]]}>", text) for text in texts
    )
    fields = {
        "id": row.get("id"),
        "question": question,
        "options": dict(zip(LETTERS, options, strict=False)),
        "answer_idx": row.get("answer"),
        "subfield": row.get("subfield"),
    }
    return _kept(fields, pictures, (contents[number] for number in there))


def _yes_no(
    fields: dict[str, Any], answer: object, pictures: PictureFolder, contents: Iterable[object]
) -> dict[str, Any] | LeftOut:
    said = str(answer).strip(" .\t\r\n").casefold()
    if said not in YES_NO:
        return OPEN_ANSWER
    options = dict(zip(LETTERS, YES_NO, strict=False))
    letter = LETTERS[YES_NO.index(said)]
    return _kept({**fields, "options": options, "answer_idx": letter}, pictures, contents)


def _kept(
    fields: dict[str, Any], pictures: PictureFolder, contents: Iterable[object]
) -> dict[str, Any] | LeftOut:
    """Return a record with its pictures, which are read only here, or why it has none."""
    try:
        return {**fields, "images": [pictures.keep(content) for content in contents]}
    except NoPictureError as error:
        return LeftOut(str(error))


def _rows(files: Sequence[Path]) -> Iterator[dict[str, Any]]:
    """Yield the rows of Parquet files, pictures included."""
    for path in files:
        yield from parquet_records(path, with_content=True)


def _content(value: object) -> bytes | None:
    """Return the bytes of a picture in a table: bytes, or an object with bytes and a path."""
    if isinstance(value, dict):
        value = value.get("bytes")
    return value if isinstance(value, bytes) and value else None


def _archive_and_others(files: Sequence[Path]) -> tuple[PictureArchive, list[Path]]:
    archives = [path for path in files if ending(path) == ".zip"]
    if len(archives) != 1:
        raise ConfigError(
            f"--from names {counted(len(archives), '.zip archive')}; give one with the pictures, "
            "and one file of questions"
        )
    return PictureArchive(archives[0]), [path for path in files if path not in archives]


def _archive_and_questions(files: Sequence[Path]) -> tuple[PictureArchive, Path]:
    """Return the archive with the pictures, and the only other file.

    Raises:
        ConfigError: There is not one of each.
    """
    archive, others = _archive_and_others(files)
    if len(others) != 1:
        raise ConfigError(
            f"--from names {counted(len(others), 'file')} of questions; give one, and one .zip "
            "archive with the pictures"
        )
    return archive, others[0]


def _list_of(content: bytes, name: str) -> list[Mapping[str, Any]]:
    """Return the objects of a JSON list.

    Raises:
        ConfigError: The content is not a list of objects.
    """
    records = load_json(content, name)
    if not isinstance(records, list) or not all(isinstance(one, dict) for one in records):
        raise ConfigError(f"{name} is not a list of questions")
    return records


def _listed(options: object) -> list[str]:
    """Return the options of a list, or of the Python text of one; empty if it is neither."""
    if isinstance(options, str):
        try:
            options = ast.literal_eval(options)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return []
    return [str(one) for one in options] if isinstance(options, list) else []


def _filled(options: Iterator[object]) -> dict[str, str]:
    """Return letter -> text of the options that are not empty, lettered from A on."""
    texts = [text for text in options if isinstance(text, str) and text.strip()]
    return dict(zip(LETTERS, texts, strict=False))


def _without_letter(text: str, letter: str) -> str:
    found = _CHOICE.fullmatch(text)
    return found[2].strip() if found and found[1] == letter else text
