"""The settings that are in force, as people would write them, without their secrets."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import msgspec

from salticus.config import Budget, Config, Hours, Size, Tolerance

MASK = "***"
_SECRET = ("headers", "cookies")  # tables whose values may be secrets
_SPANS = (("d", 86_400), ("h", 3600), ("m", 60), ("s", 1))
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
    hidden: dict[str, Any] = {}
    hidden |= {name: {key: _hidden(v) for key, v in host.get(name, {}).items()} for name in _SECRET}
    hidden |= {"auth": _hidden(host["auth"])} if "auth" in host else {}
    hidden |= {"proxy": _no_password(host["proxy"])} if "proxy" in host else {}
    return host | {name: value for name, value in hidden.items() if value}


def _program(command: str) -> str:
    """A command without its arguments: any of them may be a secret, or hold one.

    >>> _program("curl -H 'X-Key: hunter2' https://a.example/"), _program("./notify")
    ('curl ***', './notify')
    """
    program, *rest = command.split(maxsplit=1) or [""]
    return f"{program} {MASK}" if rest else program


def _hidden(secret: str) -> str:
    """A secret that may be shown: only where it comes from."""
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
    sections = {name: v for name, v in settings.items() if isinstance(v, dict) or _tables(v)}
    yield from _pairs({name: v for name, v in settings.items() if name not in sections})
    for name, section in sections.items():
        head = f"[{name}]" if isinstance(section, dict) else f"[[{name}]]"
        for each in [section] if isinstance(section, dict) else section:
            yield f"\n{head}"
            yield from _pairs(each)


def _tables(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


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
