"""Text that changes by itself: clocks, counters of visitors, "3 minutes ago"."""

from __future__ import annotations

import re

_COUNT = r"\d[\d.,'\u00a0\u202f ]{0,12}(?:[km]|mio\.?|tsd\.?|тыс\.?|млн)?\s?"
_FEW = r"\d{1,4}\s?"
_SPAN = (
    "s|m|h|d|sec|secs|second|seconds|min|mins|minute|minutes|hr|hrs|hour|hours|day|days|"
    "sek\\.?|sekunden?|min\\.?|minuten?|std\\.?|stunden?|tag|tagen?|"
    "secondes?|heures?|jours?|j|segundos?|minutos?|horas?|d[ií]as?|"
    "second[oi]|minut[oi]|or[ae]|giorn[oi]|dias?|seconden?|minuten|uur|uren|dag|dagen|"
    "sekund[ęay]?|minut[ęay]?|godzin[ęay]?|dni|dzień|sekunder?|minuter|minutter|tim(?:me|mar|er?)|dagar?|"
    "dager?|секунд[уы]?|минут[уы]?|час(?:а|ов)?|дн(?:я|ей)|день|saniye|dakika|saat|gün"
)
_AGO = (
    rf"(?:vor|il y a|hace|há)\s{_FEW}(?:{_SPAN})",
    rf"(?:för\s)?{_FEW}(?:{_SPAN})\s(?:ago|fa|atrás|geleden|temu|sedan|siden|назад|önce|tilbage)",
    r"\d{1,3}\s?(?:秒|分|分钟|時間|小时|小時|日|天|초|분|시간|일)\s?(?:前|전)",
)
_CLOCK = (
    r"\d{1,2}:\d\d:\d\d(?:\s?[ap]\.?m\.?)?",
    r"(?:\d{1,3}\s?[dt]\w{0,4}\s?)?\d{1,2}\s?h\w{0,4}\s?\d{1,2}\s?m\w{0,6}\s?\d{1,2}\s?s\w{0,6}",
)
_WATCHED = (
    rf"{_COUNT}(?:people|persons?|others?|users?|visitors?|customers?|shoppers?)\s(?:are\s|is\s)?"
    r"(?:currently\s|also\s|now\s)?(?:watching|viewing|looking|online|browsing|here)\b[^<]{0,40}",
    rf"{_COUNT}(?:personen|leute|besucher|kunden|nutzer)\s(?:\w+\s){{0,3}}(?:sehen|schauen|online)\b[^<]{{0,40}}",
    rf"{_COUNT}(?:views?|page\s?views|aufrufe|ansichten|zugriffe|vues|vistas|"
    r"visualizaciones|visualizzazioni|visualizações|weergaven|wyświetle(?:ń|nia)|odsłon|visningar|"
    r"visninger|просмотр(?:ов|а)?|görüntülenme|次浏览|回視聴)",
    rf"(?:views?|hits|page\s?views|visitors?|aufrufe|besucher|vues|visitas|online)\s?:\s?{_COUNT}",
)
_LEAD = (
    r"(?:(?:last\s)?(?:updated|checked|modified|refreshed)|posted|published|aktualisiert|zuletzt\s\w+|"
    r"mis à jour|actualizado|aggiornato|bijgewerkt|zaktualizowano)?[:\s]{0,2}"
)
_RESTLESS = re.compile(rf"{_LEAD}(?:{'|'.join((*_AGO, *_CLOCK, *_WATCHED))})[\s.!·|•–-]{{0,4}}")
# Short text nodes with a number: few enough to be looked at one by one.
_NUMBERED = re.compile(r">(\s*+[^<>\d]{0,30}+\d[^<>]{0,60}+)(?=<)")


def settled(text: str) -> str:
    """HTML without text nodes that say nothing but what changes by itself.

    >>> settled("<p>Sold <b>3 minutes ago</b> to a man who came 3 minutes ago</p>")
    '<p>Sold <b></b> to a man who came 3 minutes ago</p>'
    """
    return _NUMBERED.sub(_kept, text)


def _kept(node: re.Match[str]) -> str:
    return ">" if _RESTLESS.fullmatch(node[1].strip().lower()) else node[0]
