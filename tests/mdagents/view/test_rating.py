"""Ratings by clinicians in a browser and over HTTP, open and blind."""

from __future__ import annotations

import re
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import httpx2
import pytest
import uvicorn
from playwright.async_api import expect
from starlette.applications import Starlette

from mdagents.cli.ratings import main as ratings_program
from mdagents.cli.score import main as score
from mdagents.records.ratings import ASKED, RATINGS, read_ratings
from mdagents.view.app import make_app
from mdagents.view.rating import make_blind_app
from tests.conftest import REPOSITORY
from tests.support.browser import CHROMIUM, low_contrasts, open_page, problems

pytestmark = pytest.mark.browser
(RUN,) = (REPOSITORY / "mdagents/examples").glob("*/run.json")
PATH = "questions/case-kawasaki/rate"
SCORES = dict.fromkeys(ASKED, "4")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    shutil.copytree(RUN.parent.parent, tmp_path / "output")
    return tmp_path / "output" / RUN.parent.name


@contextmanager
def served(app: Starlette) -> Iterator[str]:
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            thread.join(0.01)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = server.force_exit = True
        thread.join()


def key_of(url: str) -> str:
    found = re.search(r'name="key" value="([^"]+)"', httpx2.get(url, timeout=30).text)
    assert found
    return found[1]


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")
async def test_a_rating_is_saved_and_shown_to_its_rater_alone(run: Path) -> None:
    with served(make_app(run.parent)) as address:
        async with open_page() as page:
            await page.goto(f"{address}/runs/{run.name}/questions/case-kawasaki")
            await page.get_by_role("link", name="rate", exact=True).click()
            form = page.locator("#summary-1")
            for name in ASKED:
                await form.locator(f"[name={name}][value='5']").check()
            await form.get_by_label("Remark").fill("<b>Too short</b>")
            await form.get_by_label("Your name").fill("Đỗ A")
            await form.get_by_role("button").click()
            await expect(page.locator("#summary-1 .rated")).to_have_text("rated")
            await expect(page.locator("#summary-1 textarea")).to_have_value("<b>Too short</b>")
            await expect(page.locator("#answer .rated")).to_have_count(0)
            assert await problems(page) == []
            assert await low_contrasts(page) == []
        (saved,) = read_ratings(run)
        assert (saved.rater, saved.item, saved.harmful) == ("Đỗ A", "summary-1", 5)
        other = httpx2.get(f"{address}/runs/{run.name}/{PATH}", timeout=30).text
        assert "Too short" not in other


def test_a_rating_from_elsewhere_or_too_large_or_wrong_is_refused(run: Path) -> None:
    with served(make_app(run.parent, hosts=("127.0.0.1",))) as address:
        url = f"{address}/runs/{run.name}/{PATH}"
        form = {"key": key_of(url), "item": "answer", "rater": "A", **SCORES}

        def sent(data: dict[str, str] = form, **headers: str) -> int:
            return httpx2.post(url, data=data, headers=headers, timeout=30).status_code

        assert sent(origin="http://elsewhere.example") == 403
        assert sent(origin="null") == 403
        assert sent(host="elsewhere.example") == 400
        assert sent({**form, "key": "guess"}) == 403
        assert sent({**form, "remark": "x" * 9_000}) == 413
        assert sent({**form, "remark": "x" * 1_001}) == 400
        assert sent({**form, "useful": "6"}) == 400
        assert sent({**form, "item": "summary-99"}) == 400
        assert sent({**form, "rater": " "}) == 400
        assert sent({key: value for key, value in form.items() if key != "useful"}) == 400
        assert sent({**form, "case_id": "../x", "more": "1"}) == 400
        assert httpx2.post(url, json=form, timeout=30).status_code == 415
        many = {**form, **{f"f{n}": "1" for n in range(30)}}
        assert sent(many) == 400
        assert not (run / RATINGS).exists()
        assert sent(origin=address) == 303
        assert len(read_ratings(run)) == 1


@pytest.mark.parametrize("name", ["50%", "50%41", "a\nb", "a?b#c", "é;'"])
def test_who_has_rated_is_led_back_to_the_page(run: Path, name: str) -> None:
    run.rename(run.with_name(name))
    with served(make_app(run.parent)) as address, httpx2.Client(timeout=30) as client:
        url = f"{address}/runs/{quote(name)}/{PATH}"
        form = {"key": key_of(url), "item": "answer", "rater": "A", **SCORES}
        sent = client.post(url, data=form)
        assert sent.status_code == 303
        assert sent.headers["location"] == f"/runs/{quote(name)}/{PATH}#answer"
        assert client.get(f"{address}{sent.headers['location']}").status_code == 200


def test_what_a_page_takes_is_named(run: Path) -> None:
    """etalab-ia/OpenGateLLM#1064: the methods of one of two routes of an address were named."""
    with served(make_app(run.parent)) as address:
        for path, taken in ((f"/runs/{run.name}/{PATH}", "GET HEAD POST"), ("/", "GET HEAD")):
            refused = httpx2.put(f"{address}{path}", timeout=30)
            assert refused.status_code == 405
            assert set(refused.headers["allow"].split(", ")) == set(taken.split())


def test_with_a_token_nobody_rates_without_it(run: Path) -> None:
    with served(make_app(run.parent, token="secret")) as address:
        url = f"{address}/runs/{run.name}/{PATH}"
        assert httpx2.post(url, data=SCORES, timeout=30).status_code == 401


def test_blind_pages_tell_nothing_of_the_run(run: Path) -> None:
    second = run.parent / "another-model_run"
    shutil.copytree(run, second)
    orders = set()
    for seed in range(6):
        with served(make_blind_app(run.parent, seed=seed)) as address:
            pages = [httpx2.get(f"{address}{at}", timeout=30) for at in (
                "/", "/runs/run-1", f"/runs/run-1/{PATH}", f"/runs/run-2/{PATH}",
                f"/runs/{run.name}", f"/runs/{run.name}/{PATH}", "/api/runs",
                f"/runs/run-1/{PATH.removesuffix('/rate')}", "/runs/run-1/report",
            )]  # fmt: skip
            assert [page.status_code for page in pages] == [200] * 4 + [404] * 5
            for page in pages:
                told = page.text + str(page.headers)
                for hidden in (run.name, second.name, "written-by-hand", "intermediate",
                               "ten-debates", "Pediatrician:", "right option"):  # fmt: skip
                    assert hidden not in told
            url = f"{address}/runs/run-1/{PATH}"
            form = {"key": key_of(url), "item": "answer", "rater": f"R{seed}", **SCORES}
            assert httpx2.post(url, data=form, timeout=30).status_code == 303
            rated = {one.rater for one in read_ratings(run)}
            orders.add(f"R{seed}" in rated)
    assert orders == {True, False}


def test_figures_and_csv(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with served(make_app(run.parent)) as address:
        url = f"{address}/runs/{run.name}/{PATH}"
        for rater in "AB":
            for item in ("answer", "summary-1"):
                form = {"key": key_of(url), "item": item, "rater": rater, **SCORES}
                assert httpx2.post(url, data=form, timeout=30).status_code == 303
    assert score(["--input", str(run)]) == 0
    assert "2 of 1 answers by 2" in capsys.readouterr().out
    assert ratings_program([str(run), "r.csv"]) == 0
    before = (run / RATINGS).read_bytes()
    assert ratings_program([str(run), "r.csv", "--import"]) == 0
    assert "0 of 4 ratings added" in capsys.readouterr().out
    (run / RATINGS).unlink()
    assert ratings_program([str(run), "r.csv"]) == 2
    assert ratings_program([str(run), "r.csv", "--import"]) == 0
    assert (run / RATINGS).read_bytes() == before
