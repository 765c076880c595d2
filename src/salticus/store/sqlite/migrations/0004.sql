-- What pages can be found by; and how far files of clicks were counted.

CREATE VIEW words AS                  -- of pages with a value, or of which a merchant's feed tells
SELECT
    page,
    url,
    coalesce(json_extract(fields, '$.title'), '') AS title,
    coalesce(json_extract(fields, '$.brand'), '')
        || ' ' || coalesce(json_extract(fields, '$.category'), '')
        || ' ' || coalesce(json_extract(fields, '$.merchant'), '')
        || ' ' || coalesce(json_extract(fields, '$.gtin'), '')
        || ' ' || coalesce(json_extract(fields, '$.sku'), '')
        || ' ' || coalesce(json_extract(fields, '$.mpn'), '')
        || ' ' || coalesce(json_extract(fields, '$.id'), '') AS about
FROM (
    SELECT
        pages.id AS page,
        pages.url,
        coalesce(latest.fields, json_extract(pages.told, '$.value.fields')) AS fields
    FROM pages LEFT JOIN "values" AS latest ON latest.visit = pages.value
    WHERE latest.visit IS NOT NULL OR pages.told IS NOT NULL
);

CREATE VIRTUAL TABLE search USING fts5 (
    title, about, url, tokenize = 'unicode61 remove_diacritics 2'
);

INSERT INTO search (search, rank) VALUES ('rank', 'bm25(8.0, 4.0, 1.0)');

INSERT INTO search (rowid, title, about, url) SELECT page, title, about, url FROM words;

UPDATE signals SET kind = 'feed' WHERE kind = 'entry';  -- one word for one thing

CREATE TABLE imports (                -- a file of clicks that begins so was counted up to here
    digest TEXT PRIMARY KEY,          -- of its first bytes, unpacked
    place INTEGER NOT NULL,           -- how many bytes those are
    file TEXT NOT NULL,               -- its name
    at INTEGER NOT NULL               -- when it was counted
) WITHOUT ROWID;
