"""The settings: whether they can be used, and as people would write them, without secrets."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from salticus.config import Budget, Config, Hours, Size, Tolerance, load
from salticus.crawl.opening import clock_of
from salticus.crawl.parts import make_parts
from salticus.errors import ConfigError, PluginError, SalticusError
from salticus.store import open_store
from salticus.views.trial import Finding, bad, doubtful, good

MASK = "***"
_SPANS = (("d", 86_400), ("h", 3600), ("m", 60), ("s", 1))
_ROLES = ("policy", "predictor", "spacing", "gate", "proposer")
_SIZES = (("GB", 10**9), ("MB", 10**6), ("KB", 10**3))


def effective(config: Config) -> dict[str, Any]:
    """All settings by name, as they would stand in the file; what is not set is left out."""
    told = _plain(config)
    del told["folder"], told["file"]
    told["hosts"] = [_masked(host) for host in told.get("hosts", ())]
    if "command" in (hook := told.get("on_change", {})):
        hook["command"] = _program(hook["command"])
    return {name: value for name, value in told.items() if value not in ([], {})}


def _masked(host: dict[str, Any]) -> dict[str, Any]:
    masks = {"headers": _hidden, "cookies": _hidden, "auth": _hidden, "proxy": _no_password}
    return host | {name: mask(host[name]) for name, mask in masks.items() if name in host}


def _program(command: str) -> str:
    """A command without its arguments: any of them may be a secret, or hold one.

    >>> _program("curl -H 'X-Key: hunter2' https://a.example/"), _program("./notify")
    ('curl ***', './notify')
    """
    program, *rest = command.split(maxsplit=1) or [""]
    return f"{program} {MASK}" if rest else program


def _hidden(secret: Any) -> Any:
    """A secret, or a table of them, that may be shown: only where it comes from."""
    if isinstance(secret, dict):
        return {name: _hidden(each) for name, each in secret.items()}
    return secret if secret.startswith("env:") else MASK


def _no_password(url: str) -> str:
    """A proxy without its password.

    >>> _no_password("http://me:secret@proxy.example:3128")
    'http://***@proxy.example:3128'
    """
    user, at, _ = urlsplit(url).netloc.rpartition("@")
    return url.replace(user + at, f"{MASK}@", 1) if at else url


def _plain(value: Any) -> Any:
    """A setting as it is written in the file."""
    if isinstance(value, msgspec.Struct):
        fields = ((f.name, getattr(value, f.name)) for f in msgspec.structs.fields(value))
        return {name: _plain(each) for name, each in fields if each is not None}
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    return _written(value)


def _written(value: Any) -> Any:
    """A quantity as people write it.

    >>> [_written(v) for v in (timedelta(hours=36), Size(10_000_000), Budget.parse("10%"))]
    ['36h', '10 MB', '10%']
    """
    if isinstance(value, timedelta):
        return _span(value.total_seconds())
    if isinstance(value, Size):
        unit, many = next(((u, n) for u, n in _SIZES if value and value % n == 0), ("", 1))
        return f"{value // many} {unit}" if unit else int(value)
    if isinstance(value, Budget):
        return f"{value.amount * 100:g}%" if value.per_page else value.amount
    if isinstance(value, Tolerance):
        return f"{value.amount * 100:g}%" if value.relative else value.amount
    if isinstance(value, Hours):
        return f"{value.start:%H:%M}-{value.end:%H:%M} {value.zone.key}"
    return value


def _span(seconds: float) -> str:
    unit, many = next(((u, n) for u, n in _SPANS if seconds and seconds % n == 0), ("ms", 0.001))
    return f"{seconds / many:g}{unit}"


def as_toml(settings: Mapping[str, Any]) -> str:
    """Settings as a TOML file: first those at the top, then the sections.

    >>> as_toml({"tick": "2h", "fetch": {"delay": "1s"}, "hosts": [{"match": "*"}]}).split()
    ['tick', '=', '"2h"', '[fetch]', 'delay', '=', '"1s"', '[[hosts]]', 'match', '=', '"*"']
    """
    return "\n".join(_lines(settings)) + "\n"


def _lines(settings: Mapping[str, Any]) -> Iterator[str]:
    yield from _pairs({name: value for name, value in settings.items() if not _tables(value)})
    for name, section in settings.items():
        for table in _tables(section):
            yield f"\n[[{name}]]" if isinstance(section, list) else f"\n[{name}]"
            yield from _pairs(table)


def _tables(value: Any) -> list[dict[str, Any]]:
    return [
        each for each in (value if isinstance(value, list) else [value]) if isinstance(each, dict)
    ]


def _pairs(settings: Mapping[str, Any]) -> Iterator[str]:
    for name, value in settings.items():
        if value not in ([], {}):
            yield f"{name} = {_toml(value)}"


def _toml(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, dict):
        inner = ", ".join(f"{json.dumps(name)} = {_toml(each)}" for name, each in value.items())
        return f"{{ {inner} }}"
    return json.dumps(value, ensure_ascii=False)


async def settings_of(path: Path) -> tuple[Config | None, list[Finding]]:
    """The settings, if they can be understood, and what can be said of them alone."""
    try:
        config = load(path)
    except ConfigError as error:
        remedy = "`salticus config default` shows all settings."
        return None, [bad("settings", str(error), remedy)]
    parts = await _parts(config)
    return config, [good("settings", f"{path} is understood"), *_settings(config), *parts]


def _settings(config: Config) -> Iterator[Finding]:
    yield _contact(config.fetch.contact)
    for section, problem in _problems(config):
        yield bad(section, problem)
    if any(rule.render for rule in config.pages):
        yield _browser(config.fetch.browser)
    if config.extract.pdf and find_spec("pypdf") is None:
        extra = "Install Salticus with the extra `pdf`."
        yield bad("pdf", "extract.pdf is set, but pypdf is not installed", extra)


def _contact(contact: str) -> Finding:
    if not contact:
        return bad(
            "contact",
            "fetch.contact is empty, and `salticus run` will not start without it",
            "Give an e-mail or web address at which site owners can reach you.",
        )
    if "@" not in contact and "://" not in contact:
        return doubtful(
            "contact",
            f"{contact!r} is neither an e-mail nor a web address",
            "Site owners who have a complaint would rather write to you than block you.",
        )
    return good("contact", f"site owners are told that they can turn to {contact}")


async def _parts(config: Config) -> list[Finding]:
    """What keeps `run` from making what plans and learns. It is made as `run` makes it, on an empty
    store, since the crawl's own may not be there yet."""
    try:
        make_parts(config, clock_of(config), await open_store("memory:"))
    except (PluginError, ConfigError) as error:
        return [bad(_role(str(error)), str(error))]
    except Exception as error:  # a user's own part may do anything
        return [bad("parts", f"{type(error).__name__}: {error}")]
    return []


def _role(said: str) -> str:
    """The part that an error speaks of.

    >>> _role("no predictor is called 'nosuch'")
    'predictor'
    """
    return next((word for word in said.split() if word in _ROLES), "parts")


def _problems(config: Config) -> Iterator[tuple[str, str]]:
    """What is wrong with rules, identities and hooks: (section, problem)."""
    from salticus.crawl.hooks import action_of
    from salticus.extract.rules import check_rules
    from salticus.fetch.identity import Identities

    hook = config.on_change
    checks: dict[str, Callable[[], object]] = {
        "[[pages]]": lambda: check_rules(config.pages),
        "[[hosts]]": lambda: Identities(config),
        "[on_change]": lambda: hook and action_of(hook, Path(config.folder)),  # nothing is run
    }
    for section, check in checks.items():
        try:
            check()
        except SalticusError as error:
            yield section, str(error)


def _browser(named: str | None) -> Finding:
    from salticus.fetch.browser import find

    try:
        return good("browser", f"pages with scripts are rendered by {find(named)}")
    except ConfigError as error:
        return bad("browser", str(error))
