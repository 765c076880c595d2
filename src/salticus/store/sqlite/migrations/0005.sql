-- What was foretold, and what the estimate of freshness needs; pages of the panel.

ALTER TABLE observations ADD COLUMN chance REAL;  -- of a change, as foretold by the plan

CREATE TABLE gauges (                 -- one row a tick: sums over all pages at its start
    at INTEGER PRIMARY KEY,
    days REAL NOT NULL,               -- the length of the tick
    pages INTEGER NOT NULL,
    demand REAL NOT NULL,
    stale REAL NOT NULL,              -- pages that are out of date, as foretold
    stale_demand REAL NOT NULL,       -- the same, weighted by demand
    coins INTEGER NOT NULL,           -- pages that exploration could draw
    coin_demand REAL NOT NULL,
    visits REAL NOT NULL              -- planned, by cost
);

CREATE TABLE samples (                -- visits that explore
    visit INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,              -- the tick
    stale REAL NOT NULL,              -- chance that the copy is out of date at its start
    demand REAL NOT NULL
);

CREATE INDEX samples_at ON samples (at);

CREATE TABLE panel (                  -- pages that are visited often, on a budget of their own
    page INTEGER PRIMARY KEY,
    stratum TEXT NOT NULL,
    weight REAL NOT NULL,             -- pages that this one stands for
    every REAL NOT NULL,              -- days
    since INTEGER NOT NULL,
    until INTEGER                     -- NULL = until it is ended
);
