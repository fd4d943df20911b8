"""All supported forms, in the order in which they are tried."""

from __future__ import annotations

from mdagents.scoring.forms.form import Form, Record
from mdagents.scoring.forms.inspect_ai import INSPECT
from mdagents.scoring.forms.lm_eval import LM_EVAL
from mdagents.scoring.forms.mdagents import MDAGENTS, OURS
from mdagents.scoring.forms.medagentboard import MEDAGENTBOARD
from mdagents.scoring.forms.medagentsbench import MEDAGENTSBENCH
from mdagents.scoring.forms.mmlu_pro import MMLU_PRO

FORMS = (OURS, MEDAGENTSBENCH, MEDAGENTBOARD, LM_EVAL, INSPECT, MDAGENTS, MMLU_PRO)


def form_of(record: Record) -> Form | None:
    """Return the form of a record; None when it is unknown."""
    names = record.keys()
    for form in FORMS:
        if form.fields <= names:
            return form
    return None
