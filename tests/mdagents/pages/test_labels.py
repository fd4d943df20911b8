"""Labels of figures cover no label and no mark, whatever the data."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mdagents.pages.labels import boxes_of_line, overlap, place_labels

BOUNDS = (46.0, 2.0, 760.0, 350.0)
POINTS = st.tuples(st.floats(60, 740), st.floats(15, 340))
SIZES = st.tuples(st.floats(20, 180), st.just(16.0))


@pytest.mark.sweep
@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(POINTS, SIZES), min_size=1, max_size=12))
def test_labels_never_overlap(data: list[tuple[tuple[float, float], tuple[float, float]]]) -> None:
    marks, sizes = [mark for mark, _ in data], [size for _, size in data]
    lines = [box for x, y in marks for box in boxes_of_line([(x, y - 30), (x, y + 30)])]
    found = place_labels(marks, sizes, BOUNDS, lines=lines)
    boxes = [place[0] for place in found if place is not None]
    assert not any(overlap(one, other) for one, other in combinations(boxes, 2))
    for x, y in marks:
        assert not any(overlap(box, (x - 6, y - 6, x + 6, y + 6)) for box in boxes)
    for left, top, right, bottom in boxes:
        assert BOUNDS[0] <= left
        assert right <= BOUNDS[2]
        assert BOUNDS[1] <= top
        assert bottom <= BOUNDS[3]


def test_a_label_is_beside_its_mark_and_a_moved_one_has_a_leader() -> None:
    marks = [(300.0, 100.0)] * 6
    found = place_labels(marks, [(80.0, 16.0)] * 6, BOUNDS)
    assert all(found), "six labels find a place"
    assert [bool(place[1]) for place in found if place] == [False] * 4 + [True] * 2
