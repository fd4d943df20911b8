"""Flags of pictures: whether they are shown, to whom, and how they are sent."""

from __future__ import annotations

import asyncio
from enum import StrEnum
from typing import Annotated

from mdagents.datasets.picture_preparing import MAX_PIXELS, PictureSettings, prepare_pictures
from mdagents.datasets.questions import Question
from mdagents.runs.flags.bounds import AtLeast1
from mdagents.runs.flags.flag import Flag, Flags
from mdagents.settings import ImageAgents
from mdagents_llm.pictures import ImageDetail, Picture


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
        AtLeast1, Flag("scale a picture with more pixels down (width times height)")
    ] = MAX_PIXELS

    async def pictures_of(self, question: Question) -> tuple[Picture, ...]:
        """Return the pictures of a question as agents see them; they are prepared in a thread.

        Raises:
            ConfigError: A picture cannot be read.
        """
        if not question.pictures or self.images is Images.DROP:
            return ()
        settings = PictureSettings(self.image_max_pixels, self.image_detail)
        return await asyncio.to_thread(prepare_pictures, question, settings)
