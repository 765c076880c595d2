"""Clicks and impressions a day of a crawl's pages, with the model that the registry names."""

from __future__ import annotations

from datetime import datetime

import numpy as np

from salticus.models.registry import Registry
from salticus.predict.followed import Followed
from salticus.predict.modelled_demand import ModelledDemand
from salticus.predict.serving import Served
from salticus.types import Ints, moment
from salticus.types.dates import HOUR_US
from salticus.types.state import State


class ServedDemand(ModelledDemand, Served):
    """`ModelledDemand` by whichever model the registry says, else counts alone."""

    alone = "counts alone"

    def __init__(self, task: str, registry: Registry, followed: Followed) -> None:
        ModelledDemand.__init__(self, task, followed)
        Served.__init__(self, registry)
        self.says = f"predicts {task}s"

    def ask(self, ids: Ints, hour: int) -> None:
        now: datetime = moment(np.datetime64(hour * HOUR_US, "us"))
        self._guarded(lambda: ModelledDemand.ask(self, ids, hour), now)

    def state(self) -> State:
        return {**super().state(), "version": np.array(self.version_)}

    def restore(self, state: State) -> None:
        super().restore(state)
        self.version_ = int(state["version"])
