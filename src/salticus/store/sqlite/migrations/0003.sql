-- What readers did, as it was counted; and what the gate made of their clicks.

CREATE TABLE demand (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    page INTEGER NOT NULL,
    at INTEGER NOT NULL,              -- start of the hour
    clicks INTEGER NOT NULL,
    impressions INTEGER NOT NULL
);

CREATE INDEX demand_page_at ON demand (page, at);
CREATE INDEX demand_at ON demand (at);

CREATE TABLE requests (               -- clicks that asked for a visit at once
    id INTEGER PRIMARY KEY,           -- the crawl's number
    page INTEGER NOT NULL,
    at INTEGER NOT NULL,
    score REAL NOT NULL,              -- the chance that the copy was out of date
    propensity REAL NOT NULL,         -- with which the gate let it through
    sent INTEGER NOT NULL,
    visit INTEGER                     -- NULL: not sent, or there was no room for it
);

CREATE INDEX requests_at ON requests (at);
