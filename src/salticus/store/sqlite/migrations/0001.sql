-- Times are µs since 1970 UTC unless said otherwise; NULL = never or unknown.

PRAGMA application_id = 0x53616c74;

CREATE TABLE meta (
    name TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) WITHOUT ROWID;

INSERT INTO meta VALUES ('revision', 0);

CREATE TABLE pages (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    revision INTEGER NOT NULL,        -- grows with every edit by hand, never with a visit
    added INTEGER NOT NULL,
    demand REAL,                      -- clicks a day
    cost REAL NOT NULL DEFAULT 1.0,   -- in visits
    max_interval REAL,                -- days
    last_visit INTEGER,
    last_answer INTEGER,
    last_change INTEGER,
    visits INTEGER NOT NULL DEFAULT 0,
    changes INTEGER NOT NULL DEFAULT 0,
    failures INTEGER NOT NULL DEFAULT 0,
    value INTEGER,                    -- the visit that found the latest value
    content INTEGER,                  -- the visit that brought the content kept
    kind TEXT,
    status TEXT,
    digest TEXT,
    etag TEXT,
    last_modified TEXT,
    fault TEXT,
    tags TEXT NOT NULL DEFAULT '[]',  -- JSON, sorted
    host TEXT NOT NULL,
    url TEXT NOT NULL UNIQUE
);

CREATE INDEX pages_revision ON pages (revision);

CREATE TABLE observations (
    visit INTEGER PRIMARY KEY,
    page INTEGER NOT NULL,
    at INTEGER NOT NULL,
    purpose TEXT NOT NULL,
    propensity REAL,
    status TEXT NOT NULL,
    code INTEGER NOT NULL,
    changed INTEGER,
    since INTEGER,
    age_s REAL,
    digest TEXT,
    fault TEXT,
    size INTEGER NOT NULL,
    elapsed_s REAL NOT NULL
);

CREATE INDEX observations_page_at ON observations (page, at);
CREATE INDEX observations_at ON observations (at);

CREATE TABLE "values" (
    visit INTEGER PRIMARY KEY,
    page INTEGER NOT NULL,
    at INTEGER NOT NULL,
    digest TEXT,
    kind TEXT NOT NULL,
    value BLOB NOT NULL,              -- text as it is, or if long its UTF-8 under zstd
    fields TEXT NOT NULL              -- JSON
);

CREATE INDEX values_page_at ON "values" (page, at);

CREATE TABLE content (                -- the latest of each page
    visit INTEGER PRIMARY KEY,        -- not the page: rows in order of time are written 3 x faster
    content_type TEXT NOT NULL,
    body BLOB NOT NULL                -- under zstd
);

CREATE TABLE hosts (
    host TEXT PRIMARY KEY,
    next_at REAL NOT NULL,            -- wall seconds since 1970
    strikes INTEGER NOT NULL,
    robots BLOB,                      -- UTF-8 under zstd
    robots_code INTEGER,
    robots_until REAL NOT NULL        -- wall seconds since 1970
);

CREATE TABLE signals (
    id INTEGER PRIMARY KEY,
    page INTEGER NOT NULL,
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    value TEXT
);

CREATE INDEX signals_page_at ON signals (page, at);
CREATE INDEX signals_at ON signals (at);

CREATE TABLE state (
    id INTEGER PRIMARY KEY CHECK (id = 0),
    state BLOB NOT NULL
);
