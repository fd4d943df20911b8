"""Words of the pages with their meaning, for tooltips and for the glossary at a page's end."""

from __future__ import annotations

from collections.abc import Mapping

GLOSSARY: Mapping[str, str] = {
    "First majority": "The option that more than half of the experts chose before they read each "
    "other. Split: no option had a majority.",
    "Rescued": "The first majority was wrong; the decision is right.",
    "Overturned": "The first majority was right; the decision is wrong.",
    "Finding": "A word of the question, not of its options, by which agents argue. Findings are "
    "compared by word: a paraphrase is missed.",
    "Idle tokens": "Paid after the first opinions where the decision is the answer of their "
    "majority.",
    "Oracle gap": "Answers where a first opinion was right and the decision is not, less the "
    "reverse.",
    "Paid": "Charged by the provider. Replies reused from the cache cost nothing.",
    "Tokens": "Prompt and reply tokens of all questions. The teams' tokens are those of routers, "
    "experts and moderators; EXAID's are those of its summaries.",
    "Teams' tokens": "Prompt and reply tokens of routers, experts and moderators, without EXAID.",
    "95% interval": "The accuracies that fit the data. Two runs with overlapping intervals may "
    "still differ: compare them pairwise.",
    "Chance": "The accuracy of guessing: the mean of 1 / number of options.",
    "Frontier": "Runs that no other run matches in accuracy for as little money or as few tokens.",
    "Holm": "Adjusts p-values for the number of comparisons. Significant: p below 0.05 after it, "
    "and an interval that excludes 0.",
    "Minimum detectable difference": "The smallest true difference that these questions show in 80 "
    "of 100 comparisons.",
}
"""Word -> meaning, in one or two sentences."""
