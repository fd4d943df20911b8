r"""LaTeX and HTML as models write them, among them forms of public notes on GitHub.

Chats that show them undisplayed: open-webui#828, Mintplex-Labs/anything-llm#3057 and #3413.
"""

from __future__ import annotations

import pytest

from exaid_core.checks.alerts import alerts_of_chunk, find_alerts, mentions_alert
from exaid_core.checks.grounding import unsupported_terms
from exaid_core.checks.markup import displayed


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (r"$\text{SpO}_2 = 74\%$", "SpO2 = 74%"),
        (r"\( \text{SpO}_{2} < 90\% \)", " SpO2 < 90% "),
        (r"\[\mathrm{pH} \leq 6.9\]", "pH ≤6.9"),
        (r"$CI < 1.8\text{ L/min/m}^2$", "CI < 1.8 L/min/m2"),
        (r"$1.5 \times 10^{9}/\text{L}$", "1.5 ×10^9/L"),
        (r"$P_{50} \approx 26.8\text{ mmHg}$", "P50 ≈26.8 mmHg"),
        (r"$38.5^{\circ}\text{C}$, $10\,\mu g$", "38.5°C, 10 µg"),
        (r"$10{,}000$ or \frac{1}{2}", "10,000 or 1/2"),
        ("$$\\text{K}^+ = 7.1$$", "K+ = 7.1"),
        (r"100\% and NIBP\_SBP", "100% and NIBP_SBP"),
        (r"$5\,\mu\text{g}$ at \(\leq\text{5 min}\)", "5 µg at ≤5 min"),
        ("SpO<sub>2</sub> &lt;&nbsp;80%", "SpO2 <\u00a080%"),
        ("<b>500</b> mg, 12 x10<sup>9</sup>/L", "500 mg, 12 x10^9/L"),
        # neither
        ("It costs $5 and $10, or $5/$10, or US$5-$10.", None),
        ("$HOME/a_b and $PATH", None),
        (r"C:\temp\logs, a\b, \[x\] done", None),
        (r"as reported \[74\] and \[7, 9–12\]", None),  # references in Markdown
        ("NYHA <I or >III, SpO2 <b and HR> 50", None),
        ("AT&T; x <b y; <a href='x'>", None),
        ("agent_1 said 10^2", None),
    ],
)
def test_markup_is_read_as_it_is_displayed(text: str, shown: str | None) -> None:
    assert displayed(text) == (text if shown is None else shown)


@pytest.mark.parametrize(
    ("text", "alert"),
    [
        (r"On room air $\text{SpO}_2 = 74\%$.", "SpO2 = 74"),
        (r"Now \( \text{GCS} = 5 \), intubate.", "GCS = 5"),
        (r"$\text{BP} = 68/40\,\text{mmHg}$", "BP = 68/40"),
        (r"$MAP = 48\text{ mmHg}$ on norepinephrine", "MAP = 48"),
        (r"$\text{K}^+ = 7.1\ \text{mmol/L}$", "K+ = 7.1"),
        ("SpO<sub>2</sub>: 74%", "SpO2: 74"),
        ("SpO2 &lt; 80%", "SpO2 < 80"),
    ],
)
def test_a_danger_in_markup_is_an_alert(text: str, alert: str) -> None:
    assert list(find_alerts(text)) == [alert]
    assert alerts_of_chunk("", text) == (alert,)
    assert mentions_alert(text, alert)


def test_a_danger_in_a_formula_that_is_cut_in_two() -> None:
    before, chunk = r"On room air $\text{SpO}_2 =", r" 74\%$."
    assert alerts_of_chunk(before, chunk) == ("SpO2 = 74",)


def test_a_harmless_value_in_markup_is_none() -> None:
    assert list(find_alerts(r"$\text{SpO}_2 = 98\%$, $\text{GCS} = 15$, SpO2 &gt; 80%")) == []
    assert list(find_alerts(r"Her SpO2 was low \[74\], and MAP \[45\]")) == []


@pytest.mark.parametrize(
    ("support", "summary"),
    [
        (r"$5\text{ mg/kg}$", "5 mg/kg"),
        (r"$10\,\mu g/kg$", "10 mcg/kg"),
        (r"$CI < 1.8\text{ L/min/m}^2$", "1.8 L/min/m²"),
        (r"$1.5 \times 10^9/\text{L}$", "1.5 x10^9/L"),
        (r"$\frac{80}{50}$ mmHg", "80/50 mmHg"),
        (r"$10{,}000$ units", "10,000 units"),
        ("<b>500</b> mg", "500 mg"),
        ("10&nbsp;mg and 5 &micro;g", "10 mg, 5 mcg"),
        ("**500** mg", "500 mg"),
        ("__500__ mg", "500 mg"),
        ("`500` mg", "500 mg"),
        ("from **5**-**10** mg", "5-10 mg"),
        ("BP **80**/**50** mmHg", "80/50 mmHg"),
    ],
)
def test_a_quantity_in_markup_is_supported_and_no_other_is(support: str, summary: str) -> None:
    assert unsupported_terms([summary], support) == ()
    assert unsupported_terms([support], summary) == ()
    assert unsupported_terms(["70 mg"], support) == ("70 mg",)
