-- What visits to sources saw: which links stood when, and which pages are new.

ALTER TABLE links ADD COLUMN seen INTEGER;  -- the last visit to the source that showed it

CREATE TABLE looks (                  -- answered visits to sources, in the order they were stored
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    source INTEGER NOT NULL,
    at INTEGER NOT NULL,
    since INTEGER,                    -- the look before; NULL for the first, whose links are old
    shown INTEGER NOT NULL,           -- links
    new INTEGER NOT NULL,             -- links to pages that were not known
    kept INTEGER NOT NULL,            -- links of the look before that are still there
    gone INTEGER NOT NULL             -- those that are not
);

CREATE INDEX looks_source ON looks (source, at);

CREATE TABLE finds (                  -- new pages in the order in which they were found
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    page INTEGER NOT NULL,
    source INTEGER NOT NULL,          -- the first that showed it
    at INTEGER NOT NULL,
    since INTEGER NOT NULL            -- the look before, in which it was not there
);

CREATE INDEX finds_page ON finds (page);

ALTER TABLE found_by ADD COLUMN since INTEGER NOT NULL DEFAULT 0;  -- the first look; 0 = unknown
ALTER TABLE found_by ADD COLUMN day INTEGER NOT NULL DEFAULT 0;  -- since 1970, UTC, of the last look
ALTER TABLE found_by ADD COLUMN today INTEGER NOT NULL DEFAULT 0;  -- new pages on that day, without imports
