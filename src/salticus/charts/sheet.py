"""Headings, words, tables and charts as one HTML file that needs no network."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from html import escape
from pathlib import Path
from typing import Any, Self

from salticus.errors import ConfigError
from salticus.exchange.place import in_place

Table = tuple[tuple[str, ...], list[tuple[Any, ...]]]
"""Header and rows."""

SUFFIXES = (".html", ".svg", ".png")
_FONT = "system-ui, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif"
_STYLE = f"""
body {{ font: 16px/1.5 {_FONT}; color: #1b1b1b; background: #fff; max-width: 1000px;
  margin: 24px auto; padding: 0 24px; }}
h1 {{ font-size: 28px; margin: 0 0 12px; }}
h2 {{ font-size: 21px; margin: 40px 0 8px; padding-top: 12px; border-top: 1px solid #ddd; }}
h3 {{ font-size: 17px; margin: 24px 0 6px; }}
p {{ margin: 6px 0; max-width: 860px; }}
ul.remarks {{ color: #555; font-size: 14px; margin: 6px 0; padding-left: 20px; max-width: 860px; }}
table {{ border-collapse: collapse; margin: 10px 0; font-size: 14px; }}
th, td {{ padding: 3px 14px 3px 0; border-bottom: 1px solid #e5e5e5; text-align: left; }}
th {{ font-weight: 600; color: #444; vertical-align: bottom; }}
.number {{ text-align: right; font-variant-numeric: tabular-nums; }}
td {{ max-width: 640px; overflow-wrap: break-word; }}
code {{ font: 13px ui-monospace, Consolas, monospace; }}
figure {{ margin: 12px 0; overflow-x: auto; }}
figcaption {{ color: #555; font-size: 14px; max-width: 860px; }}
"""
# nothing may be loaded, whatever a page's title or a merchant's name holds; Vega compiles
# expressions, hence 'unsafe-eval'
_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; "
    "img-src data: blob:"
)
LOOK = {
    "background": "#ffffff",
    "font": "system-ui, Segoe UI, Helvetica Neue, Arial, sans-serif",
    "axis": {"labelFontSize": 12, "titleFontSize": 13, "titleFontWeight": "normal",
             "gridColor": "#ececec", "labelColor": "#333", "titleColor": "#333",
             "domainColor": "#999", "tickColor": "#999", "labelLimit": 220, "titlePadding": 8},
    "legend": {"labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal",
               "titleLimit": 300},
    "title": {"fontSize": 14, "fontWeight": 600, "anchor": "start", "color": "#1b1b1b"},
    "view": {"stroke": None},
}  # fmt: skip
_NUMBER = re.compile(r"[+−-]?[\d.,]+(e[+-]\d+)?( %)?|–")
_ACTIONS = {"export": True, "source": False, "compiled": False, "editor": False}


class Sheet:
    """One page, written from top to bottom; every method but the last two gives the sheet back.

    >>> page = Sheet("Prices").words("All of them:").table(("offer", "price"), [("tea", 3)])
    >>> "<td>tea</td>" in page.html()
    True
    """

    def __init__(self, title: str) -> None:
        self.title = title
        self._parts: list[str] = []
        self._charts: list[dict[str, Any]] = []

    def heading(self, text: str, *, rank: int = 2) -> Self:
        """Begin a section (rank 2) or a part of one (3)."""
        return self._add(f"<h{rank}>{_text(text)}</h{rank}>")

    def words(self, *paragraphs: str) -> Self:
        """Plain text; `names` in backticks are set as code, here and everywhere."""
        return self._add(*(f"<p>{_text(text)}</p>" for text in paragraphs))

    def remarks(self, texts: Iterable[str]) -> Self:
        """Small print, one point each; nothing if there is none."""
        points = "".join(f"<li>{_text(text)}</li>" for text in texts)
        return self._add(f'<ul class="remarks">{points}</ul>') if points else self

    def table(self, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> Self:
        """A table; columns of numbers are set to the right, None is a dash."""
        body = [[shown(cell) for cell in row] for row in rows]
        right = [all(_NUMBER.fullmatch(row[k]) for row in body) for k in range(len(header))]
        head = "".join(map(_cell, ["th"] * len(header), header, right))
        lines = ("".join(map(_cell, ["td"] * len(row), row, right)) for row in body)
        text = "".join(f"<tr>{line}</tr>" for line in lines)
        return self._add(f"<table><thead><tr>{head}</tr></thead><tbody>{text}</tbody></table>")

    def chart(self, chart: Any, caption: str = "") -> Self:
        """An Altair chart, with words beneath it."""
        self._charts.append(chart.to_dict())
        words = f"<figcaption>{_text(caption)}</figcaption>" if caption else ""
        return self._add(f'<figure><div id="chart{len(self._charts)}"></div>{words}</figure>')

    def html(self) -> str:
        """The page as text."""
        head = (
            f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
            '<meta name="viewport" content="width=device-width">'
            f"<title>{escape(self.title)}</title><style>{_STYLE}</style>"
        )
        body = "\n".join([f"<h1>{escape(self.title)}</h1>", *self._parts, *self._scripts()])
        html = f'<html lang="en"><head>{head}</head>\n<body>\n{body}\n</body></html>'
        return f"<!DOCTYPE html>\n{html}\n"

    def write(self, path: Path) -> None:
        """Write the page; a file of that name is replaced when the new one is complete."""
        text = self.html()
        with in_place(path) as part:
            part.write_text(text, "utf-8")

    def _add(self, *parts: str) -> Self:
        self._parts += parts
        return self

    def _scripts(self) -> list[str]:
        """The drawing code once, then one call a chart."""
        if not self._charts:
            return []
        options = _json({"actions": _ACTIONS, "renderer": "svg", "config": LOOK})
        calls = (
            f'vegaEmbed("#chart{k}", {_json(spec)}, {options});'
            for k, spec in enumerate(self._charts, start=1)
        )
        return [f"<script>{code}</script>" for code in (_bundle(), *calls)]


def draw(chart: Any, path: Path, sheet: Sheet, caption: str) -> None:
    """Write a chart to an SVG or PNG file, or at the end of the sheet to an HTML file, by the
    suffix of the path."""
    import vl_convert

    kind = checked(path).suffix.lower()
    if kind == ".html":
        sheet.chart(chart, caption).write(path)
        return
    spec = chart.to_dict()
    if kind == ".svg":
        picture = vl_convert.vegalite_to_svg(spec, config=LOOK).encode()
    else:
        picture = vl_convert.vegalite_to_png(spec, config=LOOK, scale=2)
    with in_place(path) as part:
        part.write_bytes(picture)


def checked(path: Path) -> Path:
    """The file to draw to, if its name tells what it is to be."""
    if path.suffix.lower() not in SUFFIXES:
        raise ConfigError(f"{path}: a plot is a file that ends in {', '.join(SUFFIXES)}")
    return path


def _text(text: str) -> str:
    """Text as HTML; a number stays with its unit.

    >>> _text("a < 5 %, see `c`")
    'a &lt; 5&nbsp;%, see <code>c</code>'
    """
    coded = re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))
    return re.sub(r"(?<=\d) (?=[%hd](?!\w))", "&nbsp;", coded)


def _cell(tag: str, text: str, right: bool) -> str:
    where = ' class="number"' if right else ""
    return f"<{tag}{where}>{_text(text)}</{tag}>"


def shown(value: Any) -> str:
    """A cell as text: thousands apart, floats with four digits, None a dash.

    >>> shown(1234567), shown(0.123456), shown(None), shown("tea"), shown(12345.678)
    ('1,234,567', '0.1235', '–', 'tea', '12,346')
    """
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _json(data: Any) -> str:
    """JSON that cannot end the script in which it stands."""
    return json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")


@cache
def _bundle() -> str:
    """The code that draws, from the package that ships it."""
    import altair as alt
    import vl_convert

    version = "_".join(alt.SCHEMA_VERSION.split(".")[:2])  # v6.4.1 is v6_4 there
    return vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed", vl_version=version)


def table_of(rows: Iterable[Mapping[str, Any]], columns: Mapping[str, Any]) -> Table:
    """Header and rows: each column shows the entry that it names, or what it makes of a row.

    >>> table_of([{"url": "a", "n": 2}], {"page": "url", "half": lambda row: row["n"] / 2})
    (('page', 'half'), [('a', 1.0)])
    """
    cells = [[row[c] if isinstance(c, str) else c(row) for c in columns.values()] for row in rows]
    return tuple(columns), [tuple(row) for row in cells]


def each(rows: Iterable[dict[str, Any]], name: str) -> list[Any]:
    """The values of a column, each once, in the order in which they come."""
    return list(dict.fromkeys(row[name] for row in rows))
