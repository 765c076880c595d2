"""What models serve in a crawl: for changes beside the rhythm, whichever the registry names."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime

import numpy as np

from salticus.errors import InputError
from salticus.models.file import Saved
from salticus.models.registry import NONE, Registry
from salticus.models.traits import Traits, load_version
from salticus.predict.followed import Followed
from salticus.predict.versioned import Versioned
from salticus.types import Outcomes, Pages, instant, moment
from salticus.types.dates import HOUR_US
from salticus.types.state import State

logger = logging.getLogger(__name__)


class Served:
    """Something that a model speaks in, whichever the registry says; looked up at every tick.

    Law: no model stops a crawl. One that is missing, of another version, damaged or says what is
    no probability is passed over for the one that served before it, and at last for none; that is
    logged as an error and written into the registry's history, unless somebody only looks on
    (`tells` is False).
    """

    task = "change"
    followed: Followed
    says = "predicts changes"
    alone = "the rhythm alone"

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self.version_ = NONE
        self.tells = True
        self._broken: set[int] = set()  # of which the registry could not be told
        self._unread = False  # the registry, at the last tick

    @property
    def speaks(self) -> bool:
        """Whether a model does."""
        raise NotImplementedError

    def use_model(self, saved: Saved | Traits | None) -> None:
        """Let this model speak from now on, or none; InputError if it cannot."""
        raise NotImplementedError

    def resume(self, saved: Saved | Traits) -> None:
        """Let the model speak on that spoke when the state was kept that was restored."""
        raise NotImplementedError

    def rebuild(self) -> None:
        """Forget what the model is, and what it has made of the past."""
        raise NotImplementedError

    def _guarded(self, work: Callable[[], None], now: datetime) -> None:
        """Choose, and work with the first of those named that can."""
        self._choose(now)
        while True:
            try:
                work()
                return
            except Exception as error:
                if self.version_ == NONE:
                    raise
                self._pass_over(self.version_, error, now)
                self._choose(now)

    def _choose(self, now: datetime) -> None:
        """Let the first speak that can, of those that the registry names."""
        for version in self._chain():
            if version == self.version_ and (version == NONE or self.speaks):
                return
            try:
                self._open(version, now)
            except Exception as error:
                self._pass_over(version, error, now)
                continue
            return

    def _chain(self) -> list[int]:
        try:
            chain = self.registry.pointer().chain()
        except (InputError, OSError) as error:
            if not self._unread:
                logger.error("the registry of models cannot be read: %s", error)
            self._unread = True
            return [n for n in dict.fromkeys((self.version_, NONE)) if n not in self._broken]
        self._unread = False
        return [version for version in chain if version not in self._broken]

    def _open(self, version: int, now: datetime) -> None:
        """Open a version and let it speak; if it is another than before, say so."""
        saved = None if version == NONE else load_version(self.registry.path(version))
        if version == self.version_ and saved is not None:
            self.resume(saved)
            return
        self.use_model(saved)
        before, self.version_ = self._named(self.version_), version
        if self.tells:
            logger.warning("%s %s from now on, not %s", self._named(version), self.says, before)
        self._tell(lambda: self.registry.note(now, "took over", version, f"from {before}"))
        if isinstance(saved, Saved):
            self._tell_unknown(saved, now)

    def _tell_unknown(self, saved: Saved, now: datetime) -> None:
        """Say so, once, if the model looks at what no page here tells."""
        names = saved.manifest.get("features", {}).get("dense", [])
        hour = int(instant(now).astype(np.int64)) // HOUR_US
        unknown = ", ".join(self.followed.unknown(self.task, names, hour))
        if unknown and self.tells:
            logger.warning("model %d looks at what is unknown here: %s", self.version_, unknown)
            self._tell(lambda: self.registry.note(now, "lacks", self.version_, unknown))

    def _pass_over(self, version: int, error: Exception, now: datetime) -> None:
        why = f"{type(error).__name__}: {error}"
        self.rebuild()  # who knows what it has broken
        logger.error("model %d cannot serve, another will: %s", version, why)
        if not self._tell(lambda: self.registry.spoil(version, why, now)):
            self._broken.add(version)

    def _tell(self, news: Callable[[], None]) -> bool:
        """Write news into the registry; whether that was possible."""
        if not self.tells:
            return False
        try:
            news()
        except (InputError, OSError) as error:
            logger.error("the registry of models cannot be told: %s", error)
            return False
        return True

    def _named(self, version: int) -> str:
        return self.alone if version == NONE else f"model {version}"


class Serving(Versioned, Served):
    """`Versioned` by whichever model the registry says, else the rhythm, which always learns."""

    def __init__(self, *, registry: Registry, followed: Followed) -> None:
        Versioned.__init__(self, followed)
        Served.__init__(self, registry)

    def meet(self, pages: Pages, now: datetime) -> None:
        self._guarded(lambda: Versioned.meet(self, pages, now), now)

    def learn(self, outcomes: Outcomes) -> None:
        try:
            super().learn(outcomes)
        except Exception as error:
            if self.version_ == NONE:
                raise
            self._pass_over(self.version_, error, moment(outcomes.at.max()))
            self.use_model(None)

    def state(self) -> State:
        return {**super().state(), "version": np.array(self.version_)}

    def restore(self, state: State) -> None:
        super().restore(state)
        self.version_ = int(state["version"])
