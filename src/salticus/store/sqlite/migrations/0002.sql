-- Pages that move, rest, are found by sources and told of by feeds; alerts; numbered changes.

ALTER TABLE pages ADD COLUMN alias INTEGER;                     -- the page that this one has become
ALTER TABLE pages ADD COLUMN canonical TEXT;                    -- another URL that it calls its own
ALTER TABLE pages ADD COLUMN idle INTEGER NOT NULL DEFAULT 0;   -- visits in a row that were in vain
ALTER TABLE pages ADD COLUMN paused INTEGER NOT NULL DEFAULT 0;
ALTER TABLE pages ADD COLUMN found INTEGER NOT NULL DEFAULT 0;  -- by a source, not by hand
ALTER TABLE pages ADD COLUMN unlisted INTEGER NOT NULL DEFAULT 0;  -- found, and named no longer
ALTER TABLE pages ADD COLUMN own_cost REAL;                     -- by hand; NULL = by the settings
ALTER TABLE pages ADD COLUMN told TEXT;                         -- JSON: of a feed, since the last answer

CREATE INDEX pages_alias ON pages (alias) WHERE alias IS NOT NULL;

CREATE TABLE links (                  -- what sources name
    source INTEGER NOT NULL,
    page INTEGER NOT NULL,
    appeared INTEGER NOT NULL,
    vanished INTEGER,                 -- NULL while it is named
    at INTEGER,                       -- when the page last changed, as the source told last
    PRIMARY KEY (source, page)
) WITHOUT ROWID;

CREATE INDEX links_page ON links (page, vanished);

CREATE TABLE changes (                -- new values in the order in which they were stored
    seq INTEGER PRIMARY KEY,          -- never used again, because no row is ever deleted
    visit INTEGER NOT NULL
);

CREATE TABLE alerts (
    id INTEGER PRIMARY KEY,
    host TEXT NOT NULL,
    kind TEXT NOT NULL,
    since INTEGER NOT NULL,
    until INTEGER,                    -- NULL while it lasts
    fault TEXT NOT NULL
);

CREATE UNIQUE INDEX alerts_open ON alerts (host, kind) WHERE until IS NULL;

CREATE TABLE forgotten (              -- pages that were deleted, so that whoever runs learns of it
    page INTEGER PRIMARY KEY,
    revision INTEGER NOT NULL,
    host TEXT NOT NULL
);

CREATE INDEX forgotten_revision ON forgotten (revision);
