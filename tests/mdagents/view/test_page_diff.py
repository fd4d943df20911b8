"""A browser that is sent what changed shows what one does that was sent all."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mdagents.pages.html_parts import Part
from mdagents.view.follower import Watch
from mdagents.view.page_diff import Operation, Stage
from tests.support.sweeps import seeds


def part(id_: str, text: str, said: str | None) -> Part:
    return Part(id_, "page", text, lambda: f"<{text}>", said)


class Browser:
    """What a page shows: part -> its HTML and what was said in it."""

    def __init__(self) -> None:
        self.shown: dict[str, tuple[str, str]] = {}

    def apply(self, operations: list[Operation], now: dict[str, Part]) -> None:
        for what, id_, *rest in operations:
            if what == "put":
                self.shown[id_] = rest[1], now[id_].grows or ""  # the text is a part of the HTML
            elif what == "add":
                html, said = self.shown[id_.removesuffix("-said")]
                self.shown[id_.removesuffix("-said")] = html, said + rest[0]
            elif what == "keep":
                self.shown = {part: self.shown[part] for part in self.shown if part in rest}
            else:
                self.shown.pop(id_, None)


_ids = st.sampled_from("abcd")
_steps = st.lists(
    st.one_of(
        st.tuples(st.just("change"), _ids, st.text("xyz", max_size=2)),
        st.tuples(st.just("say"), _ids, st.text("mno", min_size=1, max_size=3)),
        st.tuples(st.just("drop"), _ids, st.just("")),
        st.tuples(st.just("look"), st.just(""), st.just("")),
        st.tuples(st.just("restart"), st.just(""), st.just("")),
    ),
    max_size=40,
)


@pytest.mark.sweep
@example([("change", "a", "x"), ("look", "", ""), ("drop", "a", ""), ("restart", "", "")])
@given(_steps)
def test_a_browser_shows_what_is_there_however_often_it_or_the_server_was_away(
    steps: list[tuple[str, str, str]],
) -> None:
    parts: dict[str, tuple[str, str]] = {}
    browser, known, version = Browser(), 0, 10
    stage = Stage(version)
    for what, id_, text in [*steps, ("look", "", "")]:
        version += 1
        if what == "change":
            parts[id_] = text, parts.get(id_, ("", ""))[1]
        elif what == "say":
            html, said = parts.get(id_, ("", ""))
            parts[id_] = html, said + text
        elif what == "drop":
            parts.pop(id_, None)
        elif what == "restart":
            stage = Stage(version)
        now = {key: part(key, *value) for key, value in parts.items()}
        stage.update(now.values(), version)
        if what == "look":
            browser.apply(stage.since(known), now)
            known = stage.version
    expected = {key: (f"<{text}>", said) for key, (text, said) in parts.items()}
    assert browser.shown == expected


def test_a_turn_that_is_asked_again_is_shown_anew() -> None:
    """HKUDS/nanobot#4038: a retry that begins like the first try was joined to half of it."""
    begun = "The findings fit aortic dissection, since the pain is tearing and the pulses differ. "
    browser, stage = Browser(), Stage(1)
    for version, said in enumerate([f"{begun}So A.", f"{begun}But it may be B instead."], start=2):
        now = {"a": part("a", "x", said)}
        stage.update(now.values(), version)
        browser.apply(stage.since(version - 1), now)
        assert browser.shown["a"] == ("<x>", said)


@pytest.mark.parametrize("seed", seeds(20))
async def test_who_leaves_at_any_moment_leaves_nothing_behind(seed: int) -> None:
    chance, ticks = random.Random(seed), 0

    async def changes() -> AsyncGenerator[None]:
        nonlocal ticks
        for ticks in range(30):  # noqa: B007
            await asyncio.sleep(chance.random() / 500)
            yield

    watch = Watch(
        lambda _: [part("a", str(ticks), "x" * ticks)], lambda: ticks, changes, between=0.001
    )

    async def look(page: str) -> None:
        async with aclosing(watch.updates(page, 0)) as updates:
            async for _ in updates:
                await asyncio.sleep(chance.random() / 500)

    before = asyncio.all_tasks()
    readers = [asyncio.create_task(look(str(n % 3))) for n in range(6)]
    for reader in chance.sample(readers, 4):
        await asyncio.sleep(chance.random() / 100)
        reader.cancel()
    rest = [reader for reader in readers if not reader.cancelling()]
    for reader in rest[: chance.randint(0, 2)]:
        reader.cancel()
    await asyncio.wait_for(asyncio.gather(*readers, return_exceptions=True), 20)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == before
    async with aclosing(watch.updates("0", 0)) as updates:  # and who comes later is told
        assert await anext(updates)


@pytest.mark.parametrize("seed", seeds(20))
async def test_a_page_is_sent_what_came_after_it_was_made(seed: int) -> None:
    """And all of it when more pages were made since than are remembered."""
    chance, now = random.Random(seed), {page: {"a": "x", "b": "y"} for page in "opqrstu"}

    async def changes() -> AsyncGenerator[None]:
        return
        yield

    def parts(page: str) -> list[Part]:
        return [part(id_, text, None) for id_, text in now[page].items()]

    watch = Watch(parts, lambda: 7, changes, between=0)  # a clock that stands
    made: list[tuple[str, int, dict[str, str]]] = []
    sizes = set()
    for step in range(60):
        page = chance.choice("opqrstu")
        now[page][chance.choice("abc")] = str(step)
        if chance.random() < 0.2:
            now[page].pop(chance.choice("abc"), None)
        if chance.random() < 0.7:
            made.append((page, watch.version(page), dict(now[page])))
        page, version, shown = chance.choice(made[-9:] or [("o", 0, {})])
        browser = Browser()
        browser.shown = {id_: (f"<{text}>", "") for id_, text in shown.items()}
        async with aclosing(watch.updates(page, version)) as updates:
            async for _, operations in updates:
                browser.apply(operations, {one.id: one for one in parts(page)})
                sizes.add(len(operations))
        assert browser.shown == {id_: (f"<{text}>", "") for id_, text in now[page].items()}
    assert 1 in sizes, "where one part has changed one is sent"


async def test_a_slow_reader_misses_nothing() -> None:
    words = ["one"]
    read = asyncio.Event()

    async def changes() -> AsyncGenerator[None]:
        await read.wait()
        yield

    def parts(page: str) -> list[Part]:
        return [part("a", "", " ".join(words))]

    watch = Watch(parts, lambda: len(words), changes, between=0)
    browser = Browser()
    async with aclosing(watch.updates("", 0)) as updates:
        browser.apply((await anext(updates))[1], {"a": parts("")[0]})
        for word in ("two", "three"):  # while "one" is sent
            words.append(word)
            watch.update()
        read.set()
        browser.apply((await anext(updates))[1], {"a": parts("")[0]})
    assert browser.shown["a"][1] == "one two three"


async def test_an_error_is_not_the_end_of_a_run() -> None:
    async def changes() -> AsyncGenerator[None]:
        yield
        raise OSError("the disk is gone")

    watch = Watch(lambda _: [part("a", "x", None)], lambda: 1, changes, between=0)

    async def look() -> None:
        async with aclosing(watch.updates("", 0)) as updates:
            async for _ in updates:
                pass

    with pytest.raises(OSError, match="gone"):
        await look()
