"""Flags of pictures: whether they are shown, to whom, and how they are sent."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from mdagents.datasets.pictures.preparing import MAX_PIXELS
from mdagents.runs.flags.flag import Flag, Flags
from mdagents.settings import ImageAgents
from mdagents_llm.pictures import ImageDetail

_LEAST_PIXELS = 10_000  # a smaller limit would leave nothing to see, as if the picture were dropped


class Images(StrEnum):
    """What happens to the pictures of questions."""

    SEND = "send"
    DROP = "drop"
    """Questions are asked without their pictures; every record and the report say so."""


class PictureFlags(Flags):
    """How the pictures of questions are shown to agents."""

    images: Annotated[
        Images, Flag("show agents the pictures of questions, or ask without them", in_name=True)
    ] = Images.SEND
    image_agents: Annotated[
        ImageAgents,
        Flag("which agents see the pictures: all, or only experts and the router"),
    ] = ImageAgents.ALL
    image_detail: Annotated[
        ImageDetail, Flag("resolution at which the model looks at a picture, where it has a choice")
    ] = ImageDetail.AUTO
    image_max_pixels: Annotated[
        int,
        Field(ge=_LEAST_PIXELS),
        Flag("scale a picture with more pixels down (width times height)"),
    ] = MAX_PIXELS
