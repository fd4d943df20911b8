"""Ratings by clinicians: the file, the figures, and CSV."""

from __future__ import annotations

import csv
import re
from codecs import BOM_UTF8
from io import StringIO
from itertools import product
from pathlib import Path
from threading import Thread

import pytest

from mdagents.cli.ratings import main as ratings_program
from mdagents.records.ratings import RATINGS, Rating, add_ratings, read_csv, read_ratings, write_csv
from mdagents.scoring.ratings import RatingFigures, ordinal_alpha, rating_figures, ratings_tables
from mdagents_llm.errors import ConfigError
from tests.mdagents.scoring.result_records import ours, write

AT = "2026-01-01T00:00:00Z"


def rating(rater: str = "A", item: str = "answer", score: int = 4, **more: object) -> Rating:
    scores = dict.fromkeys(("faithful", "complete", "useful", "harmful", "would_act"), score)
    told = {"at": AT, "rater": rater, "case_id": "case-1", "item": item, **scores, **more}
    return Rating.model_validate(told)


def test_an_alpha_that_rounds_to_zero_has_no_minus() -> None:
    figures = RatingFigures("answer", "faithful", 2, 2, 1, 4.0, None, None, -0.001)
    (table,) = ratings_tables([figures])
    assert table.rows[0][-1] == "0.00"


def test_alpha_is_that_of_the_published_examples() -> None:
    # Krippendorff (2011), section D: four observers, twelve units, missing values; 0.815 ordinal.
    observers = [
        "1 2 3 3 2 1 4 1 2 . . .",
        "1 2 3 3 2 2 4 1 2 5 . 3",
        ". 3 3 3 2 3 4 2 2 5 1 .",
        "1 2 3 3 2 4 4 1 2 5 1 .",
    ]
    rows = [observer.split() for observer in observers]
    units = [[int(value) for value in unit if value != "."] for unit in zip(*rows, strict=True)]
    assert ordinal_alpha(units) == pytest.approx(0.815, abs=0.0005)
    # Section A with two values, where every metric is the same: ten units, 0.095.
    pairs = zip("0100000000", "1110010100", strict=True)
    assert ordinal_alpha([list(map(int, pair)) for pair in pairs]) == pytest.approx(0.095, abs=5e-4)


def test_the_latest_rating_counts_whatever_the_order_of_the_lines(tmp_path: Path) -> None:
    late, early = rating(score=1, at="2026-01-01T01:00:00+00:00"), rating(score=5)
    add_ratings(tmp_path, [late, early])
    assert read_ratings(tmp_path) == [late]
    offset = rating(score=2, at="2026-01-01T02:30:00+02:00")
    add_ratings(tmp_path, [offset])
    assert read_ratings(tmp_path) == [late], "it is half past midnight in UTC"
    unreadable = rating(score=3, at="1/1/2026 00:00")
    add_ratings(tmp_path, [unreadable])
    assert read_ratings(tmp_path) == [unreadable], "the last line, as its time is unknown"


def test_ratings_of_another_run_are_refused_and_no_file_is_lost(
    capsys: pytest.CaptureFixture[str],
) -> None:
    path, file = write([ours("q1", "A", "A", case_id="case-q1")]), Path("clin.csv")
    (path.with_suffix("")).mkdir()
    for case_id, status in (("q1", 2), ("case-q1", 0)):
        file.write_text(write_csv([rating(case_id=case_id)]))
        assert ratings_program([str(path), str(file), "--import"]) == status
    out, err = capsys.readouterr()
    assert "case_id q1 is no answer of run" in err
    assert "1 of 1 rating added" in out
    before = file.read_text()
    assert ratings_program([str(path), str(file)]) == 2
    assert "--import adds its ratings" in capsys.readouterr().err
    assert file.read_text() == before
    assert ratings_program([str(path), "new.csv"]) == 0


@pytest.mark.parametrize(
    ("item", "summaries", "message"),
    [
        (
            "summary-7",
            0,
            "error: r.csv: item summary-7 of case_id case-1 is no summary of run; this case has 0 ",
        ),
        ("summary-3", 2, "is no summary of run; this case has 2 summaries"),
        ("summary-2", 2, ""),
        ("answer", 0, ""),
    ],
)
def test_ratings_of_summaries_that_the_run_does_not_have_are_refused(
    item: str, summaries: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    exaid = {"summaries": [{"status_action": "So."}] * summaries}
    path = write([ours("q1", "A", "A", case_id="case-1", exaid=exaid)])
    path.with_suffix("").mkdir()
    Path("r.csv").write_text(write_csv([rating(item=item)]))
    assert ratings_program([str(path), "r.csv", "--import"]) == (2 if message else 0)
    assert message in capsys.readouterr().err
    assert len(read_ratings(path.with_suffix(""))) == (0 if message else 1)


def test_excel_keeps_the_names_of_raters_in_an_export() -> None:
    """Excel reads UTF-8 only after a byte order mark: https://github.com/exceljs/exceljs/issues/2153."""
    path = write([ours("q1", "A", "A", case_id="case-1")])
    folder = path.with_suffix("")
    folder.mkdir()
    composed, decomposed = "Dr. M\u00fcller", "Dr. Mu\u0308ller"
    add_ratings(folder, [rating(composed), rating(decomposed)])
    assert ratings_program([str(path), "r.csv"]) == 0
    assert Path("r.csv").read_bytes().startswith(BOM_UTF8)
    assert ratings_program([str(path), "r.csv", "--import"]) == 0
    assert [one.rater for one in read_ratings(folder)] == [composed]


@pytest.mark.parametrize(
    ("imported", "count"),
    [
        # Renamed, alone and beside a new rating: the run has it under the earlier name.
        ([rating("R1")], None),
        ([rating("R1"), rating("R1", at="2026-01-02T00:00:00Z", case_id="case-2")], None),
        ([rating("R1", at="2026-01-01 01:00:00+01:00")], None),
        # Another rating, time or item, or the earlier rater is in the file as well: of two raters.
        ([rating("R1", score=5)], 2),
        ([rating("R1", at="2026-01-01T00:00:01Z")], 2),
        ([rating("R1", case_id="case-2")], 2),
        ([rating("Dr. A"), rating("R1")], 2),
        ([rating("Dr. A")], 1),
    ],
)
def test_a_rater_with_another_name_is_not_counted_twice(
    imported: list[Rating], count: int | None, capsys: pytest.CaptureFixture[str]
) -> None:
    """Imports that double annotations: https://github.com/LAAC-LSCP/ChildProject/issues/412."""
    path = write([ours(f"q{n}", "A", "A", case_id=f"case-{n}") for n in (1, 2)])
    folder = path.with_suffix("")
    folder.mkdir()
    add_ratings(folder, [rating("Dr. A")])
    Path("r.csv").write_text(write_csv(imported))
    for _ in range(2):  # the second time, nothing is new
        assert ratings_program([str(path), "r.csv", "--import"]) == (0 if count else 2)
    assert len(read_ratings(folder)) == (count or 1)
    at = imported[0].at
    renamed = f"R1 rated answer of case_id case-1 at {at} just as Dr. A did in the run; use one "
    assert (renamed in capsys.readouterr().err) == (count is None)


def test_alpha_at_its_limits() -> None:
    assert ordinal_alpha([[1, 1], [5, 5]]) == 1
    assert ordinal_alpha([[3, 3], [3, 3]]) is None
    assert ordinal_alpha([[1], [2]]) is None
    assert ordinal_alpha([]) is None
    opposed = ordinal_alpha([[1, 5], [5, 1]])
    assert opposed is not None
    assert opposed < 0


def test_means_are_over_ratings_and_intervals_over_items() -> None:
    items = product("ABC", range(15))
    ratings = [rating(rater, f"summary-{n + 1}", 1 + n % 5) for rater, n in items]
    figures = rating_figures([*ratings, rating(score=2)])
    answers, summaries = figures[:5], figures[5:]
    # Below ten items, an interval of the bootstrap is far too narrow: of one item it is a point.
    nothing = (2, None, None, None)
    assert [(one.mean, one.low, one.high, one.alpha) for one in answers] == [nothing] * 5
    for one in summaries:
        assert (one.mean, one.alpha, one.raters, one.items, one.ratings) == (3, 1, 3, 15, 45)
        assert one.low is not None
        assert one.high is not None
        assert 2 < one.low < 2.6 < 3.4 < one.high < 4
    assert [len(table.rows) for table in ratings_tables(figures)] == [5, 5]
    assert ratings_tables([]) == []


def test_the_latest_rating_counts_and_a_torn_line_is_dropped(tmp_path: Path) -> None:
    add_ratings(tmp_path, [rating(score=1), rating("B"), rating(score=5)])
    path = tmp_path / RATINGS
    with path.open("ab") as file:
        file.write(b'{"torn')  # by a kill
    assert [(one.rater, one.useful) for one in read_ratings(tmp_path)] == [("A", 5), ("B", 4)]
    add_ratings(tmp_path, [rating("C")])
    assert [one.rater for one in read_ratings(tmp_path)] == ["A", "B", "C"]
    assert len(path.read_bytes().splitlines()) == 4


def test_several_raters_write_at_once(tmp_path: Path) -> None:
    def rate(name: str) -> None:
        for number in range(1, 11):
            add_ratings(tmp_path, [rating(name, f"summary-{number}")])

    threads = [Thread(target=rate, args=(name,)) for name in "ABCD"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(read_ratings(tmp_path)) == 40


def test_csv_is_read_as_it_was_written_and_runs_nothing(tmp_path: Path) -> None:
    ratings = [
        rating("=cmd()", remark="+1, then\n\"quoted\""), rating("'x", remark="'y"), rating("Đỗ An"),
    ]  # fmt: skip
    starts = ("＝cmd", "\t=1", "  =1", "'=1", "''", "-", "\n@x", "'")
    ratings += [rating(f"r{n}", remark=start) for n, start in enumerate(starts)]
    written = write_csv(ratings)
    assert "'=cmd()" in written
    cells = [cell for row in csv.reader(StringIO(written)) for cell in row]
    assert not [cell for cell in cells if re.match(r"\s*[=+\-@＝]", cell)]
    path = tmp_path / "ratings.csv"
    path.write_text(written, encoding="utf-8", newline="")
    assert read_csv(path) == ratings


@pytest.mark.parametrize("content", ["", "rater,item\nA,answer\n", "\x00", "at;rater;item\n"])
def test_csv_that_is_no_ratings(content: str, tmp_path: Path) -> None:
    path = tmp_path / "ratings.csv"
    path.write_text(content)
    with pytest.raises(ConfigError, match="its first line must name the columns at, rater, "):
        read_csv(path)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (",4,", ",7,", "line 2 is not a valid rating"),
        (AT, "01/01/2026 10:00", "line 2: at is '01/01/2026 10:00': write it as 2026-03-01T10:00"),
        (AT, "46023.41667", "line 2: at is '46023.41667': write it as"),  # onaio/onadata#1595
    ],
)
def test_a_line_of_csv_that_is_no_rating(old: str, new: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "ratings.csv"
    path.write_text(write_csv([rating()]).replace(old, new))
    with pytest.raises(ConfigError, match=message):
        read_csv(path)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_csv_as_spreadsheets_save_it(encoding: str, separator: str, tmp_path: Path) -> None:
    """Rows below the last one may be empty, or hold spaces (OpenDataServices/flatten-tool#186)."""
    path, ratings = tmp_path / "ratings.csv", [rating("Müller"), rating("B")]
    written = write_csv(ratings) + ",,,,,,,,,,\r\n ,,,,,,,,,,\r\n"
    path.write_text(written.replace(",", separator), encoding=encoding, newline="")
    assert read_csv(path) == ratings


def test_a_header_without_ratings_and_a_short_row(tmp_path: Path) -> None:
    path = tmp_path / "ratings.csv"
    header = write_csv([])
    path.write_text(header)
    assert read_csv(path) == []
    path.write_text(f"{header}1.0.0,{AT},A\n")
    with pytest.raises(ConfigError, match="line 2 is not a valid rating: case_id: "):
        read_csv(path)


def test_csv_in_another_encoding_is_refused_with_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "ratings.csv"
    path.write_text(write_csv([rating("Müller")]), encoding="cp1252")
    with pytest.raises(ConfigError, match="is not UTF-8 text; save it as UTF-8"):
        read_csv(path)


def test_damaged_lines_and_values(tmp_path: Path) -> None:
    (tmp_path / RATINGS).write_text('{"rater": "A"}\n')
    with pytest.raises(ConfigError, match="line 1 is not a valid rating"):
        read_ratings(tmp_path)
    (tmp_path / RATINGS).write_text("[]\n")
    with pytest.raises(ConfigError, match="line 1 is not a valid rating: Input should be "):
        read_ratings(tmp_path)
    for wrong in ({"useful": 6}, {"useful": 0}, {"item": "summary-0"}, {"rater": " \u202e"}):
        with pytest.raises(ValueError, match="validation error"):
            rating(**wrong)
