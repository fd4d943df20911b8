"""Holds LangChain's standard suite to the list of what of it is not run."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from tests.mdagents_llm.langchain_suite import NOT_RUN


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail a test of the suite that is skipped and not listed, or the other way round."""
    report = yield
    classes = getattr(getattr(item, "cls", None), "__mro__", ())
    is_standard = any(one.__module__.startswith("langchain_tests.") for one in classes)
    if not is_standard or report.when != "call" or report.failed:
        return report
    name = getattr(item, "originalname", item.name)
    if report.skipped != (name in NOT_RUN):
        report.outcome = "failed"
        report.longrepr = f"{name}: outcome and the list tests.mdagents_llm.langchain_suite differ"
    return report
