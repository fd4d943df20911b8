"""The limits of an endpoint, divided among workers that come and go."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdagents.runs.engines.shares import EndpointState, Shares, divided


class _Endpoint:
    """What a worker does with its share: it begins what it may, and reports at an exchange."""

    def __init__(self) -> None:
        self.limit = 0
        self.in_flight = 0
        self.wanted = 0

    def begin(self) -> None:
        self.in_flight = max(self.in_flight, min(self.limit, self.wanted))

    def state(self, most: int) -> EndpointState:
        return EndpointState(most, self.in_flight, max(0, self.wanted - self.in_flight))


@pytest.mark.sweep
@given(
    most=st.integers(1, 20),
    steps=st.lists(
        st.tuples(
            st.sampled_from(["exchange", "end", "want", "die", "divide"]),
            st.integers(0, 4),
            st.integers(0, 30),
        ),
        max_size=120,
    ),
)
def test_the_sum_never_exceeds_what_was_asked_for(
    most: int, steps: list[tuple[str, int, int]]
) -> None:
    shares, endpoints = Shares(), {number: _Endpoint() for number in range(5)}

    def exchange(number: int) -> None:
        endpoint = endpoints[number]
        shares.told(number, endpoint.state(most), now=0.0)
        endpoint.limit = shares.of(number, now=0.0).limit
        endpoint.begin()
        assert sum(one.in_flight for one in endpoints.values()) <= most

    for what, number, amount in steps:
        endpoint = endpoints[number]
        match what:
            case "exchange":
                exchange(number)
            case "end":
                endpoint.in_flight = max(0, endpoint.in_flight - amount)
                endpoint.begin()
            case "want":
                endpoint.wanted = amount
                endpoint.begin()
            case "die":
                shares.leave(number)
                endpoints[number] = _Endpoint()
            case "divide":
                shares.divide()
        assert sum(one.in_flight for one in endpoints.values()) <= most
    for endpoint in endpoints.values():
        endpoint.wanted = 30
    for _ in range(5):
        for number, endpoint in endpoints.items():
            endpoint.in_flight = min(endpoint.in_flight, endpoint.limit)
            exchange(number)
        shares.divide()
    limits = [endpoint.limit for endpoint in endpoints.values()]
    assert sum(limits) == most, "all of it is used"
    assert max(limits) - min(limits) <= 1


@pytest.mark.sweep
@given(most=st.integers(0, 50), needs=st.dictionaries(st.integers(0, 9), st.integers(0, 30)))
def test_nobody_gets_more_than_another_who_needs_more(most: int, needs: dict[int, int]) -> None:
    shares = divided(most, needs)
    assert sum(shares.values()) == (most if needs else 0)
    for one, need in needs.items():
        for other in needs:
            if shares[one] < need:  # who has too little: others have at most one more
                assert shares[other] <= shares[one] + 1


def test_one_that_was_told_to_wait_holds_the_others_back() -> None:
    shares = Shares()
    for number in range(2):
        shares.told(number, EndpointState(most=8), now=0.0)
    shares.told(0, EndpointState(most=8, cooling=5.0, storms=1), now=10.0)
    assert shares.of(0, now=10.0).cooling == 0.0, "it knows"
    assert shares.of(1, now=11.0).cooling == 4.0
    shares.told(1, EndpointState(most=8, cooling=4.0), now=11.5)
    assert shares.of(1, now=12.0).cooling == 3.0, "what is reported back prolongs nothing"
    assert shares.of(1, now=16.0).cooling == 0.0
