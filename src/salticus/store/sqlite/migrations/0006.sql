-- How much sources have put into the store, so that no site can flood it.

ALTER TABLE pages ADD COLUMN origin INTEGER;  -- of a found page: the page added by hand that led to it
ALTER TABLE pages ADD COLUMN left_out INTEGER NOT NULL DEFAULT 0;  -- entries that the caps kept out

CREATE INDEX pages_left_out ON pages (host) WHERE left_out;

CREATE TABLE found_on (               -- counts by host; kept by triggers
    host TEXT PRIMARY KEY,
    pages INTEGER NOT NULL DEFAULT 0, -- found on the host
    links INTEGER NOT NULL DEFAULT 0  -- of sources on the host
) WITHOUT ROWID;

CREATE TABLE found_by (               -- counts by origin; kept by triggers
    origin INTEGER PRIMARY KEY,
    pages INTEGER NOT NULL DEFAULT 0
);

INSERT INTO found_on (host, pages) SELECT host, count(*) FROM pages WHERE found GROUP BY host;

INSERT INTO found_on (host, links)
SELECT pages.host, count(*) FROM links JOIN pages ON pages.id = links.source GROUP BY pages.host
ON CONFLICT (host) DO UPDATE SET links = excluded.links;

CREATE TRIGGER found_page AFTER INSERT ON pages WHEN NEW.found
BEGIN
    INSERT INTO found_on (host, pages) VALUES (NEW.host, 1)
    ON CONFLICT (host) DO UPDATE SET pages = pages + 1;

    INSERT INTO found_by (origin, pages) SELECT NEW.origin, 1 WHERE NEW.origin IS NOT NULL
    ON CONFLICT (origin) DO UPDATE SET pages = pages + 1;
END;

CREATE TRIGGER found_page_deleted AFTER DELETE ON pages WHEN OLD.found
BEGIN
    UPDATE found_on SET pages = pages - 1 WHERE host = OLD.host;
    UPDATE found_by SET pages = pages - 1 WHERE origin = OLD.origin;
END;

CREATE TRIGGER found_page_adopted AFTER UPDATE OF found ON pages WHEN OLD.found AND NOT NEW.found
BEGIN
    UPDATE found_on SET pages = pages - 1 WHERE host = OLD.host;
    UPDATE found_by SET pages = pages - 1 WHERE origin = OLD.origin;
END;

CREATE TRIGGER link_added AFTER INSERT ON links
BEGIN
    INSERT INTO found_on (host, links) SELECT host, 1 FROM pages WHERE id = NEW.source
    ON CONFLICT (host) DO UPDATE SET links = links + 1;
END;

CREATE TRIGGER link_deleted AFTER DELETE ON links
BEGIN
    UPDATE found_on SET links = links - 1
    WHERE host = (SELECT host FROM pages WHERE id = OLD.source);
END;

CREATE TRIGGER link_handed_over AFTER UPDATE OF source ON links
BEGIN
    UPDATE found_on SET links = links - 1
    WHERE host = (SELECT host FROM pages WHERE id = OLD.source);

    INSERT INTO found_on (host, links) SELECT host, 1 FROM pages WHERE id = NEW.source
    ON CONFLICT (host) DO UPDATE SET links = links + 1;
END;
