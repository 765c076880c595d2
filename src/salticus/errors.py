"""Every error that Salticus raises on purpose.

::

    SalticusError
    ├── ConfigError        a setting is wrong; names the file, the key and what to do
    │   └── Infeasible     settings that cannot hold together; names the budget needed
    ├── PluginError        a part could not be loaded; names the part and the reason
    ├── InputError         a file, line or URL given by the user is wrong
    ├── UnknownPage        a URL that is not in the store
    ├── StoreError         the store cannot be opened, read or written
    │   ├── StoreMissing   there is none where one was looked for
    │   └── StoreLocked    another `salticus run` holds the store
    └── ExtractError       the extractor gave up on a page (deadline, memory, crash)

A failed visit is not an error: it is an observation whose status says what went wrong.
"""


class SalticusError(Exception):
    """Base of all errors below; the command line shows it in one line and exits with 2."""


class ConfigError(SalticusError):
    """A setting is wrong."""


class Infeasible(ConfigError):
    """Settings that cannot hold together.

    `needed` is the budget, in visits a day, that would make them hold; None if no budget would.
    """

    def __init__(self, message: str, *, needed: float | None = None) -> None:
        super().__init__(message)
        self.needed = needed


class PluginError(SalticusError):
    """A part could not be loaded by its name, file or entry point."""


class InputError(SalticusError):
    """A file, line or URL given by the user is wrong."""


class UnknownPage(SalticusError):
    """The URL is not in the store."""

    def __init__(self, url: str) -> None:
        super().__init__(f"{url} is not in the store; add it with `salticus add {url}`")
        self.url = url


class StoreError(SalticusError):
    """The store cannot be opened, read or written."""


class StoreMissing(StoreError):
    """There is no store at this place, and none was to be made."""


class StoreLocked(StoreError):
    """Another process runs on this store."""


class ExtractError(SalticusError):
    """The extractor gave up on a page."""
