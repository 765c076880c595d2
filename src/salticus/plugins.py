"""Parts by name, by file or by entry point, imported only when asked for."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Mapping
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from salticus.errors import PluginError

# Files that were run, with their source: a class stays the same one until its file is edited.
_LOADED: dict[Path, tuple[bytes, ModuleType]] = {}


def load(kind: str, name: str, builtin: Mapping[str, str]) -> Any:
    """The class called `name` among the parts of a `kind` ("policy", "extractor", …).

    `name` is a built-in name, ``path/to/file.py:Class``, ``module:Class``, or the name of an entry
    point in the group ``salticus.<kind>``. `builtin` maps names to ``module:Class``; a hyphen in
    such a name is as good as an underscore.

    >>> load("policy", "nosuch", {"uniform": "salticus.allocate.baselines:Uniform"})
    Traceback (most recent call last):
    salticus.errors.PluginError: no policy is called 'nosuch'; known: uniform
    """
    plain = name.replace("-", "_")
    if plain in builtin:
        return _attribute(kind, name, builtin[plain])
    if ":" in name:
        return _attribute(kind, name, name)
    found = {point.name: point for point in entry_points(group=f"salticus.{kind}")}
    if name in found:
        return found[name].load()
    known = ", ".join(sorted({*builtin, *found}))
    raise PluginError(f"no {kind} is called {name!r}; known: {known}")


def make(kind: str, name: str, builtin: Mapping[str, str], **given: Any) -> Any:
    """A new part of that name, made with what it takes of the things `given`."""
    part = load(kind, name, builtin)
    takes = inspect.signature(part).parameters
    return part(**{key: value for key, value in given.items() if key in takes})


def takes(kind: str, name: str, builtin: Mapping[str, str], given: str) -> bool:
    """Whether the part of that name is made with something of that name.

    >>> takes("policy", "uniform", {"uniform": "salticus.allocate.baselines:Uniform"}, "finding")
    False
    """
    return given in inspect.signature(load(kind, name, builtin)).parameters


def _attribute(kind: str, name: str, spec: str) -> Any:
    where, _, attribute = spec.rpartition(":")
    try:
        module = _file(kind, where) if where.endswith(".py") else importlib.import_module(where)
    except ImportError as error:
        raise PluginError(f"{kind} from {where}: {error}") from error
    if not hasattr(module, attribute):
        raise PluginError(f"{kind} {name!r}: {where} has no {attribute!r}")
    return getattr(module, attribute)


def _file(kind: str, where: str) -> Any:
    path = Path(where).resolve()
    if not path.is_file():
        raise PluginError(f"{kind} from {where}: there is no such file")
    source = path.read_bytes()
    if path in _LOADED and _LOADED[path][0] == source:
        return _LOADED[path][1]
    name = f"salticus_plugin_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise PluginError(f"{kind} from {where}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickling look the module up by name
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise PluginError(f"{kind} from {where}: {type(error).__name__}: {error}") from error
    _LOADED[path] = source, module
    return module
