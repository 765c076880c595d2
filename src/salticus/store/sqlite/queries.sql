-- Batches come as one JSON array, :rows, because SQLite then steps through all of them without
-- asking for Python's lock; long texts and bodies come as one blob, :packed, cut by substr.

-- name: bump_revision
UPDATE meta SET value = value + 1 WHERE name = 'revision';

-- name: insert_pages
INSERT INTO pages (url, host, kind, tags, max_interval, demand, found, added, revision)
SELECT
    json_extract(asked.value, '$[0]'),
    json_extract(asked.value, '$[1]'),
    json_extract(asked.value, '$[2]'),
    json_extract(asked.value, '$[3]'),
    json_extract(asked.value, '$[4]'),
    json_extract(asked.value, '$[5]'),
    json_extract(asked.value, '$[6]'),
    :at,
    (SELECT meta.value FROM meta WHERE name = 'revision')
FROM json_each(:rows) AS asked
WHERE NOT EXISTS (SELECT 1 FROM pages WHERE url = json_extract(asked.value, '$[0]'));

-- name: edit_pages
UPDATE pages SET
    revision = (SELECT meta.value FROM meta WHERE name = 'revision'),
    kind = coalesce(given.kind, pages.kind),
    max_interval = coalesce(given.max_interval, pages.max_interval),
    demand = coalesce(given.demand, pages.demand),
    found = pages.found AND given.found,
    unlisted = unlisted AND given.found,
    idle = iif(given.found, idle, 0),
    tags = (
        SELECT json_group_array(tag) FROM (
            SELECT value AS tag FROM json_each(pages.tags)
            UNION
            SELECT value AS tag FROM json_each(given.tags)
            ORDER BY tag
        )
    )
FROM (
    SELECT
        json_extract(value, '$[0]') AS url,
        json_extract(value, '$[2]') AS kind,
        json_extract(value, '$[3]') AS tags,
        json_extract(value, '$[4]') AS max_interval,
        json_extract(value, '$[5]') AS demand,
        json_extract(value, '$[6]') AS found
    FROM json_each(:rows)
) AS given
WHERE pages.url = given.url AND (
    given.kind IS NOT NULL
    OR given.max_interval IS NOT NULL
    OR given.demand IS NOT NULL
    OR given.tags <> '[]'
    OR (NOT given.found AND (pages.found OR idle))
);

-- name: edited_pages
SELECT json_group_array(id)
FROM (
    SELECT id FROM pages WHERE revision > :after
    UNION ALL
    SELECT page FROM forgotten WHERE revision > :after AND :after >= 0
)
GROUP BY id / :chunk;

-- name: page_columns
SELECT
    json_group_array(host),
    json_group_array(added),
    json_group_array(coalesce(last_visit, :never)),
    json_group_array(coalesce(last_answer, :never)),
    json_group_array(
        CASE kind WHEN 'offer' THEN 0 WHEN 'article' THEN 1 WHEN 'page' THEN 2
            WHEN 'source' THEN 3 ELSE -1 END
    ),
    json_group_array(json(printf('%!.17g', coalesce(demand, 1.0)))),
    json_group_array(json(printf('%!.17g', cost))),
    json_group_array(iif(max_interval IS NULL, NULL, json(printf('%!.17g', max_interval)))),
    json_group_array(key) FILTER (WHERE idle),
    json_group_array(idle) FILTER (WHERE idle),
    json_group_array(key) FILTER (WHERE rests),
    json_group_array(key) FILTER (WHERE found)
FROM (
    SELECT
        asked.key,
        coalesce(host, (SELECT host FROM forgotten WHERE page = asked.value), '') AS host,
        coalesce(added, 0) AS added,
        last_visit,
        last_answer,
        kind,
        demand,
        coalesce(cost, 1.0) AS cost,
        max_interval,
        idle,
        found,
        coalesce(paused OR unlisted OR alias IS NOT NULL, 1) AS rests
    FROM json_each(:ids) AS asked LEFT JOIN pages ON pages.id = asked.value
    ORDER BY asked.key
);

-- name: targets
SELECT json_group_array(json_object(
    'page', id, 'url', url, 'host', host, 'kind', kind, 'etag', etag,
    'last_modified', last_modified, 'digest', digest, 'seen', last_answer, 'tags', json(tags)
))
FROM (
    SELECT
        pages.id, url, host, kind, digest, last_answer, tags,
        iif(left_out, NULL, etag) AS etag,  -- there may be room for the rest by now
        iif(left_out, NULL, last_modified) AS last_modified
    FROM json_each(:ids) AS asked CROSS JOIN pages ON pages.id = asked.value
    ORDER BY asked.key
);

-- name: visit_view
CREATE TEMP VIEW visit AS SELECT
    NULL AS visit, NULL AS page, NULL AS at, NULL AS purpose, NULL AS propensity, NULL AS status,
    NULL AS code, NULL AS changed, NULL AS since, NULL AS age_s, NULL AS digest, NULL AS fault,
    NULL AS size, NULL AS elapsed_s, NULL AS etag, NULL AS last_modified, NULL AS chance,
    NULL AS value,     -- JSON: [kind, fields, text if short, start and size if long]
    NULL AS content,   -- JSON: [type, start, size]
    NULL AS hosts,     -- JSON: [[host, next_at, strikes, code, until, start, size], …]
    NULL AS packed,    -- what the starts and sizes point into
    NULL AS canonical;

-- name: visit_trigger
CREATE TEMP TRIGGER visit_trigger INSTEAD OF INSERT ON visit
WHEN NOT EXISTS (SELECT 1 FROM observations WHERE visit = NEW.visit)
    AND NOT EXISTS (SELECT 1 FROM forgotten WHERE page = NEW.page)
BEGIN
    INSERT INTO observations (
        visit, page, at, purpose, propensity, status, code, changed, since, age_s, digest, fault,
        size, elapsed_s, chance
    ) VALUES (
        NEW.visit, NEW.page, NEW.at, NEW.purpose, NEW.propensity, NEW.status, NEW.code,
        NEW.changed, NEW.since, NEW.age_s, NEW.digest, NEW.fault, NEW.size, NEW.elapsed_s,
        NEW.chance
    );

    INSERT OR REPLACE INTO "values" (visit, page, at, digest, kind, fields, value)
    SELECT
        NEW.visit, NEW.page, NEW.at, NEW.digest,
        json_extract(NEW.value, '$[0]'),
        json_extract(NEW.value, '$[1]'),
        coalesce(
            json_extract(NEW.value, '$[2]'),
            substr(NEW.packed, json_extract(NEW.value, '$[3]'), json_extract(NEW.value, '$[4]'))
        )
    WHERE NEW.value IS NOT NULL;

    INSERT INTO changes (visit) SELECT NEW.visit WHERE NEW.value IS NOT NULL AND NEW.visit >= 0;

    DELETE FROM content
    WHERE NEW.content IS NOT NULL AND visit = (SELECT content FROM pages WHERE id = NEW.page);

    INSERT OR REPLACE INTO content (visit, content_type, body)
    SELECT
        NEW.visit,
        json_extract(NEW.content, '$[0]'),
        substr(NEW.packed, json_extract(NEW.content, '$[1]'), json_extract(NEW.content, '$[2]'))
    WHERE NEW.content IS NOT NULL;

    INSERT OR REPLACE INTO hosts (host, next_at, strikes, robots_code, robots_until, robots)
    SELECT
        json_extract(value, '$[0]'),
        json_extract(value, '$[1]'),
        json_extract(value, '$[2]'),
        json_extract(value, '$[3]'),
        json_extract(value, '$[4]'),
        substr(NEW.packed, json_extract(value, '$[5]'), json_extract(value, '$[6]'))
    FROM json_each(NEW.hosts)
    WHERE NEW.hosts IS NOT NULL;

    UPDATE pages SET
        last_visit = NEW.at,
        status = NEW.status,
        fault = NEW.fault,
        visits = visits + 1,
        failures = failures + (NEW.status NOT IN ('ok', 'not_modified')),
        changes = changes + coalesce(NEW.changed, 0),
        last_answer = iif(NEW.status IN ('ok', 'not_modified'), NEW.at, last_answer),
        last_change = iif(NEW.changed, NEW.at, last_change),
        etag = CASE NEW.status
            WHEN 'ok' THEN NEW.etag
            WHEN 'not_modified' THEN coalesce(NEW.etag, etag)
            ELSE etag
        END,
        last_modified = CASE NEW.status
            WHEN 'ok' THEN NEW.last_modified
            WHEN 'not_modified' THEN coalesce(NEW.last_modified, last_modified)
            ELSE last_modified
        END,
        value = iif(NEW.value IS NULL, value, NEW.visit),
        digest = iif(NEW.value IS NULL, digest, NEW.digest),
        kind = coalesce(kind, json_extract(NEW.value, '$[0]')),
        canonical = iif(NEW.status = 'ok', nullif(NEW.canonical, url), canonical),
        told = iif(NEW.status IN ('ok', 'not_modified'), NULL, told),
        idle = CASE NEW.status  -- IN with so many words would cost a table a visit
            WHEN 'ok' THEN 0
            WHEN 'not_modified' THEN 0
            WHEN 'gone' THEN idle + 1
            WHEN 'soft_404' THEN idle + 1
            WHEN 'disallowed' THEN idle + 1
            WHEN 'unsafe' THEN idle + 1
            ELSE idle
        END,
        content = iif(NEW.content IS NULL, content, NEW.visit)
    WHERE id = NEW.page;

    SELECT RAISE(ABORT, 'a visit to a page that is not in the store cannot be recorded')
    WHERE changes() = 0;

    -- what FTS5 keeps is asked, not `search`, which would be copied first, once a visit
    INSERT OR REPLACE INTO search (rowid, title, about, url)
    SELECT page, title, about, url FROM words
    WHERE NEW.value IS NOT NULL AND page = NEW.page AND NOT EXISTS (
        SELECT 1 FROM search_content WHERE id = words.page AND c0 = title AND c1 = about
    );

    DELETE FROM search WHERE rowid = (
        SELECT id FROM pages WHERE id = NEW.page AND value IS NULL AND told IS NULL
    );
END;

-- name: record
INSERT INTO visit (
    visit, page, at, purpose, propensity, status, code, changed, since, age_s, digest, fault,
    size, elapsed_s, etag, last_modified, chance, value, content, hosts, packed, canonical
)
SELECT
    json_extract(value, '$[0]'),
    json_extract(value, '$[1]'),
    json_extract(value, '$[2]'),
    json_extract(value, '$[3]'),
    json_extract(value, '$[4]'),
    json_extract(value, '$[5]'),
    json_extract(value, '$[6]'),
    json_extract(value, '$[7]'),
    json_extract(value, '$[8]'),
    json_extract(value, '$[9]'),
    json_extract(value, '$[10]'),
    json_extract(value, '$[11]'),
    json_extract(value, '$[12]'),
    json_extract(value, '$[13]'),
    json_extract(value, '$[14]'),
    json_extract(value, '$[15]'),
    json_extract(value, '$[16]'),
    json_extract(value, '$[17]'),
    json_extract(value, '$[18]'),
    json_extract(value, '$[19]'),
    substr(:packed, json_extract(value, '$[20]'), json_extract(value, '$[21]')),
    json_extract(value, '$[22]')
FROM json_each(:rows);

-- name: stored_visits
SELECT json_group_array(visit) FROM observations
WHERE visit IN (SELECT value FROM json_each(:visits));

-- name: forgotten_pages
SELECT json_group_array(page) FROM forgotten
WHERE page IN (SELECT value FROM json_each(:pages));

-- name: named_table
CREATE TEMP TABLE named (page INTEGER PRIMARY KEY, at INTEGER, told TEXT, word TEXT);

-- name: chosen_table
CREATE TEMP TABLE chosen (page INTEGER PRIMARY KEY);

-- name: clear_named
DELETE FROM named;

-- name: clear_chosen
DELETE FROM chosen;

-- name: known_entries
SELECT json_group_array(json_array(page, linked, naming))
FROM (
    SELECT
        pages.id IS NOT NULL AS page,
        mine.source IS NOT NULL AS linked,
        (SELECT count(*) FROM links WHERE page = pages.id AND vanished IS NULL) AS naming
    FROM json_each(:rows) AS asked
        LEFT JOIN pages ON pages.url = json_extract(asked.value, '$[0]')
        LEFT JOIN links AS mine
            ON mine.source = :source AND mine.page = pages.id AND mine.vanished IS NULL
    ORDER BY asked.key
);

-- name: held_of_source
SELECT
    source.host,
    source.url,
    (SELECT count(*) FROM links WHERE source = :source AND vanished IS NULL),
    coalesce((SELECT links FROM found_on WHERE host = source.host), 0),
    coalesce(found_by.pages, 0),
    iif(found_by.day = :day, found_by.today, 0),
    source.kind IS NOT 'source' OR (
        coalesce(found_by.since, :at) > :at - 86400000000
        AND NOT EXISTS (SELECT 1 FROM looks WHERE looks.source = :source)
    )
FROM pages AS source
    LEFT JOIN found_by
        ON found_by.origin = coalesce(iif(source.found, source.origin, NULL), source.id)
WHERE source.id = :source;

-- name: count_found
INSERT INTO found_by (origin, since, day, today)
SELECT coalesce(iif(found, origin, NULL), id), :at, :day, :new FROM pages
WHERE id = :source AND kind = 'source'
ON CONFLICT (origin) DO UPDATE SET
    today = iif(day = excluded.day, today, 0) + excluded.today,
    day = excluded.day;

-- name: hand_over_found
INSERT INTO found_by (origin, since, day, today)
SELECT :other, since, day, today FROM found_by WHERE origin = :page
ON CONFLICT (origin) DO NOTHING;

-- name: held_on_hosts
SELECT host, pages FROM found_on WHERE host IN (SELECT value FROM json_each(:hosts));

-- name: leave_out
UPDATE pages SET left_out = :left_out WHERE id = :source AND left_out <> :left_out;

-- name: leaves_out
SELECT EXISTS (SELECT 1 FROM pages WHERE host = :host AND left_out);

-- name: insert_entries
INSERT INTO pages (url, host, kind, tags, found, origin, added, revision)
SELECT
    json_extract(asked.value, '$[0]'),
    json_extract(asked.value, '$[1]'),
    json_extract(asked.value, '$[2]'),
    source.tags,
    1,
    coalesce(iif(source.found, source.origin, NULL), source.id),
    :at,
    (SELECT meta.value FROM meta WHERE name = 'revision')
FROM pages AS source CROSS JOIN json_each(:rows) AS asked
WHERE source.id = :source
    AND NOT EXISTS (SELECT 1 FROM pages WHERE url = json_extract(asked.value, '$[0]'));

-- name: name_entries
INSERT OR IGNORE INTO named
SELECT
    pages.id,
    json_extract(asked.value, '$[3]'),
    json_extract(asked.value, '$[4]'),
    json_extract(asked.value, '$[5]')
FROM json_each(:rows) AS asked
    CROSS JOIN pages ON pages.url = json_extract(asked.value, '$[0]')
WHERE pages.id <> :source;

-- name: signal_entries
INSERT INTO signals (page, at, kind, value)
SELECT named.page, :at, named.word, named.told
FROM named LEFT JOIN links ON links.source = :source AND links.page = named.page
WHERE named.at IS NOT NULL AND (links.at IS NULL OR named.at > links.at)
ORDER BY named.page;

-- name: link_entries
INSERT INTO links (source, page, appeared, at, seen)
SELECT :source, named.page, :at, named.at, :at FROM named
WHERE true
ORDER BY named.page
ON CONFLICT (source, page) DO UPDATE SET
    vanished = NULL,
    at = max(coalesce(excluded.at, links.at), coalesce(links.at, excluded.at)),
    seen = max(excluded.seen, coalesce(links.seen, 0));

-- name: insert_look
INSERT INTO looks (source, at, since, shown, new, kept, gone)
SELECT
    id, :at, last.at,
    (SELECT count(*) FROM named),
    (SELECT count(*) FROM named WHERE page > :known),
    (SELECT count(*) FROM links
        WHERE source = id AND seen = last.at AND page IN (SELECT page FROM named)),
    (SELECT count(*) FROM links
        WHERE source = id AND seen = last.at AND page NOT IN (SELECT page FROM named))
FROM pages CROSS JOIN (SELECT max(at) AS at FROM looks WHERE source = :source) AS last
WHERE id = :source AND kind = 'source';

-- name: insert_finds
INSERT INTO finds (page, source, at, since)
SELECT named.page, source, looks.at, since
FROM looks JOIN named ON named.page > :known
WHERE seq = last_insert_rowid() AND source = :source AND looks.at = :at AND since IS NOT NULL
ORDER BY named.page;

-- name: repeat_look
INSERT INTO looks (source, at, since, shown, new, kept, gone)
SELECT source, :at, at, shown, 0, shown, 0 FROM looks WHERE source = :source ORDER BY seq DESC LIMIT 1;

-- name: see_links
UPDATE links SET seen = :at
WHERE source = :source
    AND seen = (SELECT since FROM looks WHERE source = :source ORDER BY seq DESC LIMIT 1);

-- name: last_page
SELECT coalesce(max(id), 0) FROM pages;

-- name: looks
SELECT
    json_group_array(source), json_group_array(at), json_group_array(since),
    json_group_array(shown), json_group_array(new), json_group_array(kept),
    json_group_array(gone), max(seq)
FROM (SELECT * FROM looks WHERE seq > :after ORDER BY seq LIMIT :limit);

-- name: finds
SELECT
    json_group_array(page), json_group_array(source), json_group_array(at),
    json_group_array(since), max(seq)
FROM (SELECT * FROM finds WHERE seq > :after ORDER BY seq LIMIT :limit);

-- name: standing
SELECT (SELECT max(seen) FROM links WHERE page = asked.value)
FROM json_each(:pages) AS asked ORDER BY asked.key;

-- name: last_find
SELECT coalesce(max(seq), 0) FROM finds;

-- name: news
SELECT
    finds.seq, finds.at, finds.since, finds.page, pages.url, pages.tags, source.url AS source,
    pages.last_answer AS fetched
FROM finds
    JOIN pages ON pages.id = finds.page
    JOIN pages AS source ON source.id = finds.source
WHERE finds.seq > :after
ORDER BY finds.seq
LIMIT :limit;

-- name: unlink_entries
UPDATE links SET vanished = :at
WHERE source = :source AND vanished IS NULL AND page NOT IN (SELECT page FROM named);

-- name: choose_linked
INSERT OR IGNORE INTO chosen SELECT page FROM links WHERE source = :source;

-- name: relist
UPDATE pages SET
    unlisted = NOT unlisted,
    revision = (SELECT meta.value FROM meta WHERE name = 'revision')
WHERE id IN (SELECT page FROM chosen) AND unlisted <> (
    found
    AND EXISTS (SELECT 1 FROM links WHERE page = pages.id)
    AND NOT EXISTS (SELECT 1 FROM links WHERE page = pages.id AND vanished IS NULL)
);

-- name: insert_moved
INSERT INTO pages (
    url, host, kind, tags, max_interval, demand, cost, own_cost, found, origin, added, revision
)
SELECT
    :url, :host, kind, tags, max_interval, demand, cost, own_cost, found, origin, :at,
    (SELECT meta.value FROM meta WHERE name = 'revision')
FROM pages WHERE id = :page AND NOT EXISTS (SELECT 1 FROM pages WHERE url = :url);

-- name: page_of_url
SELECT id FROM pages WHERE url = :url;

-- name: same_page
SELECT other.id
FROM pages AS mine JOIN pages AS other ON other.url = :url
WHERE mine.id = :page AND mine.alias IS NULL AND mine.host = other.host
    AND mine.digest = other.digest AND other.status IN ('ok', 'not_modified');

-- name: alias_page
UPDATE pages SET
    alias = :other,
    revision = (SELECT meta.value FROM meta WHERE name = 'revision')
WHERE id = :page AND alias IS NOT :other AND id NOT IN (
    WITH RECURSIVE way (id) AS (
        SELECT :other
        UNION
        SELECT alias FROM way JOIN pages USING (id) WHERE alias IS NOT NULL
    )
    SELECT id FROM way
);

-- name: inherit
UPDATE pages SET
    revision = (SELECT meta.value FROM meta WHERE name = 'revision'),
    kind = coalesce(pages.kind, old.kind),
    demand = coalesce(pages.demand, old.demand),
    max_interval = min(
        coalesce(pages.max_interval, old.max_interval),
        coalesce(old.max_interval, pages.max_interval)
    ),
    found = pages.found AND old.found,
    unlisted = pages.unlisted AND old.found,
    idle = min(pages.idle, old.idle),
    tags = (
        SELECT json_group_array(tag) FROM (
            SELECT value AS tag FROM json_each(pages.tags)
            UNION
            SELECT value AS tag FROM json_each(old.tags)
            ORDER BY tag
        )
    )
FROM pages AS old
WHERE pages.id = :other AND old.id = :page;

-- name: hand_over_links
UPDATE OR IGNORE links SET source = :other WHERE source = :page AND page <> :other;

-- name: drop_links
DELETE FROM links WHERE source = :page;

-- name: raise_alert
INSERT INTO alerts (host, kind, since, fault) VALUES (:host, :kind, :at, :fault)
ON CONFLICT (host, kind) WHERE until IS NULL DO UPDATE SET fault = excluded.fault;

-- name: end_alert
UPDATE alerts SET until = :at WHERE host = :host AND kind = :kind AND until IS NULL;

-- name: alerts
SELECT host, kind, since, until, fault FROM alerts
WHERE :past OR until IS NULL
ORDER BY since, id;

-- name: first_visit
SELECT min(visit) FROM observations;

-- name: ids_of_urls
SELECT json_group_array(id) FROM (
    SELECT pages.id
    FROM json_each(:urls) AS asked CROSS JOIN pages ON pages.url = asked.value
    ORDER BY asked.key
);

-- name: known_visits
SELECT json_group_array(asked.key) FROM json_each(:rows) AS asked
WHERE EXISTS (
    SELECT 1 FROM observations
    WHERE page = json_extract(asked.value, '$[0]') AND at = json_extract(asked.value, '$[1]')
);

-- name: before_table
CREATE TEMP TABLE before (
    id INTEGER PRIMARY KEY, last_visit, last_answer, last_change, value, digest, found, status,
    fault, etag, last_modified, canonical, idle, told
);

-- name: keep_states
INSERT INTO before
SELECT
    pages.id, last_visit, last_answer, last_change, pages.value, pages.digest, latest.at, status,
    fault, etag, last_modified, canonical, idle, told
FROM pages LEFT JOIN "values" AS latest ON latest.visit = pages.value
WHERE last_visit IS NOT NULL OR told IS NOT NULL;

-- name: restore_states
UPDATE pages SET
    last_visit = iif(before.last_visit >= pages.last_visit, before.last_visit, pages.last_visit),
    status = iif(before.last_visit >= pages.last_visit, before.status, pages.status),
    fault = iif(before.last_visit >= pages.last_visit, before.fault, pages.fault),
    last_answer = iif(
        before.last_answer >= pages.last_answer, before.last_answer, pages.last_answer
    ),
    etag = iif(before.last_answer >= pages.last_answer, before.etag, pages.etag),
    last_modified = iif(
        before.last_answer >= pages.last_answer, before.last_modified, pages.last_modified
    ),
    canonical = iif(
        before.last_answer >= pages.last_answer, before.canonical, pages.canonical
    ),
    idle = iif(before.last_visit >= pages.last_visit, before.idle, pages.idle),
    told = iif(
        json_extract(before.told, '$.at') > coalesce(pages.last_answer, :never), before.told, NULL
    ),
    last_change = iif(
        before.last_change >= pages.last_change, before.last_change, pages.last_change
    ),
    value = iif(before.found >= latest.at, before.value, pages.value),
    digest = iif(before.found >= latest.at, before.digest, pages.digest)
FROM before, pages AS now LEFT JOIN "values" AS latest ON latest.visit = now.value
WHERE pages.id = before.id AND now.id = before.id;

-- name: clear_before
DELETE FROM before;

-- name: hosts
SELECT host, next_at, strikes, robots, robots_code, robots_until FROM hosts ORDER BY host;

-- name: outcomes
SELECT
    json_group_array(visit),
    json_group_array(page),
    json_group_array(at),
    json_group_array(status),
    json_group_array(coalesce(changed, -1)),
    json_group_array(coalesce(since, :never)),
    json_group_array(iif(age_s IS NULL, NULL, json(printf('%!.17g', age_s)))),
    json_group_array(purpose),
    json_group_array(iif(propensity IS NULL, NULL, json(printf('%!.17g', propensity)))),
    json_group_array(iif(chance IS NULL, NULL, json(printf('%!.17g', chance)))),
    json_group_array(short)
FROM (
    SELECT
        observations.*,
        iif(typeof(value) = 'text' AND length(value) <= 200, value, NULL) AS short
    FROM observations LEFT JOIN "values" AS found ON found.visit = observations.visit
    WHERE observations.visit IN (SELECT value FROM json_each(:visits))
    ORDER BY observations.visit
);

-- name: visits_after
SELECT json_group_array(visit) FROM (
    SELECT visit FROM observations WHERE visit > :visit ORDER BY visit
);

-- name: aliases
SELECT pages.alias
UNION
SELECT step.alias FROM way JOIN pages AS step USING (id) WHERE step.alias IS NOT NULL

-- name: became
SELECT json_group_array(page) FROM (
    SELECT coalesce(
        (
            WITH RECURSIVE way (id) AS ({aliases})
            SELECT last.id FROM way JOIN pages AS last USING (id) WHERE last.alias IS NULL
        ),
        pages.id,
        -1
    ) AS page
    FROM json_each(:urls) AS asked LEFT JOIN pages ON pages.url = asked.value
    ORDER BY asked.key
);

-- name: insert_counts
INSERT INTO demand (page, at, clicks, impressions)
WITH asked AS (
    SELECT
        key,
        json_extract(value, '$[0]') AS page,
        json_extract(value, '$[1]') AS at,
        json_extract(value, '$[2]') AS clicks,
        json_extract(value, '$[3]') AS impressions
    FROM json_each(:rows)
),
together AS (
    SELECT min(key) AS key, page, at, sum(clicks) AS clicks, sum(impressions) AS impressions
    FROM asked GROUP BY page, at
),
held AS (
    SELECT
        key, together.page, together.at, together.clicks, together.impressions,
        coalesce(sum(demand.clicks), 0) AS held_clicks,
        coalesce(sum(demand.impressions), 0) AS held_impressions
    FROM together LEFT JOIN demand ON demand.page = together.page AND demand.at = together.at
    GROUP BY together.page, together.at
),
new AS (
    SELECT
        key, page, at,
        max(0, min(clicks, :clicks - held_clicks)) AS clicks,
        max(0, min(impressions, :impressions - held_impressions)) AS impressions
    FROM held
)
SELECT page, at, clicks, impressions FROM new WHERE clicks > 0 OR impressions > 0 ORDER BY key;

-- name: last_count
SELECT coalesce(max(id), 0) FROM demand;

-- name: sum_counts
SELECT coalesce(sum(clicks), 0), coalesce(sum(impressions), 0) FROM demand WHERE id > :after;

-- name: insert_mark
INSERT INTO imports (digest, place, file, at) VALUES (:digest, :place, :file, :at)
ON CONFLICT (digest) DO UPDATE SET file = excluded.file, at = excluded.at;

-- name: marks
SELECT digest, place, file, at FROM imports ORDER BY place, digest;

-- name: counts
SELECT
    json_group_array(page),
    json_group_array(at),
    json_group_array(clicks),
    json_group_array(impressions),
    max(id)
FROM (SELECT * FROM demand WHERE id > :after ORDER BY id LIMIT :limit);

-- name: past_counts
SELECT page, at, clicks, impressions, id FROM demand WHERE id <= :until ORDER BY at, id;

-- name: insert_requests
INSERT OR IGNORE INTO requests (id, page, at, score, propensity, sent, visit)
SELECT
    json_extract(value, '$[0]'),
    json_extract(value, '$[1]'),
    json_extract(value, '$[2]'),
    json_extract(value, '$[3]'),
    json_extract(value, '$[4]'),
    json_extract(value, '$[5]'),
    json_extract(value, '$[6]')
FROM json_each(:rows);

-- name: requests
SELECT id, page, at, score, propensity, sent, visit FROM requests WHERE id > :after ORDER BY id;

-- name: forget_state
DELETE FROM state;

-- name: remember
INSERT INTO state (state) VALUES (:state);

-- name: count_state
INSERT INTO meta (name, value) VALUES ('state', 1)
ON CONFLICT (name) DO UPDATE SET value = value + 1;

-- name: states_remembered
SELECT coalesce((SELECT value FROM meta WHERE name = 'state'), 0);

-- name: data_version
PRAGMA data_version;

-- name: recall
SELECT state FROM state ORDER BY id;

-- name: insert_signals
INSERT INTO signals (page, at, kind, value)
SELECT
    json_extract(value, '$[0]'),
    json_extract(value, '$[1]'),
    json_extract(value, '$[2]'),
    json_extract(value, '$[3]')
FROM json_each(:rows);

-- name: page_states
SELECT
    pages.id AS page, url, host, pages.kind, tags, added, last_visit, last_answer, last_change,
    status, fault, latest.value, coalesce(fields, '{}') AS fields, visits, changes, failures,
    max_interval, demand, cost, idle, paused, unlisted, canonical, told,
    (
        WITH RECURSIVE way (id) AS ({aliases})
        SELECT last.url FROM way JOIN pages AS last USING (id) WHERE last.alias IS NULL
    ) AS moved,
    (
        SELECT json_group_array(url) FROM (
            SELECT source.url FROM links JOIN pages AS source ON source.id = links.source
            WHERE links.page = pages.id AND vanished IS NULL
            ORDER BY source.url
        )
    ) AS sources
FROM pages LEFT JOIN "values" AS latest ON latest.visit = pages.value

-- name: fitting
SELECT id FROM pages
WHERE (:url IS NULL OR url GLOB :url)
    AND (:host IS NULL OR host GLOB :host)
    AND (:kind IS NULL OR kind = :kind)
    AND (:status IS NULL OR status = :status)
    AND (:tag IS NULL OR EXISTS (SELECT 1 FROM json_each(pages.tags) WHERE value = :tag))
    AND (:state IS NULL OR :state = CASE
        WHEN alias IS NOT NULL THEN 'moved'
        WHEN paused THEN 'paused'
        WHEN unlisted THEN 'unlisted'
        WHEN status IS NULL THEN 'new'
        WHEN idle THEN 'gone'
        WHEN status IN ('ok', 'not_modified') THEN 'well'
        ELSE 'failing'
    END)

-- name: edit_chosen
UPDATE pages SET
    revision = (SELECT meta.value FROM meta WHERE name = 'revision'),
    kind = coalesce(:kind, kind),
    demand = coalesce(:demand, demand),
    max_interval = iif(:no_interval, NULL, coalesce(:max_interval, max_interval)),
    own_cost = iif(:no_cost, NULL, coalesce(:cost, own_cost)),
    cost = iif(:no_cost, 1.0, coalesce(:cost, cost)),
    paused = coalesce(:paused, paused),
    tags = (
        SELECT json_group_array(tag) FROM (
            SELECT value AS tag FROM json_each(pages.tags)
            UNION
            SELECT value AS tag FROM json_each(:add_tags)
            EXCEPT
            SELECT value AS tag FROM json_each(:remove_tags)
            ORDER BY tag
        )
    )
WHERE id IN (SELECT page FROM chosen);

-- name: mark_forgotten
INSERT INTO forgotten (page, revision, host)
SELECT id, (SELECT meta.value FROM meta WHERE name = 'revision'), host
FROM pages WHERE id IN (SELECT page FROM chosen);

-- name: forget_aliases
UPDATE pages SET
    alias = NULL,
    revision = (SELECT meta.value FROM meta WHERE name = 'revision')
WHERE alias IN (SELECT page FROM chosen);

-- name: name_linked
INSERT OR IGNORE INTO named (page)
SELECT page FROM links WHERE source IN (SELECT page FROM chosen);

-- name: forget_content
DELETE FROM content WHERE visit IN (
    SELECT content FROM pages WHERE id IN (SELECT page FROM chosen)
);

-- name: forget_values
DELETE FROM "values" WHERE page IN (SELECT page FROM chosen);

-- name: forget_observations
DELETE FROM observations WHERE page IN (SELECT page FROM chosen);

-- name: forget_signals
DELETE FROM signals WHERE page IN (SELECT page FROM chosen);

-- name: forget_demand
DELETE FROM demand WHERE page IN (SELECT page FROM chosen);

-- name: forget_requests
DELETE FROM requests WHERE page IN (SELECT page FROM chosen);

-- name: forget_sources
DELETE FROM links WHERE source IN (SELECT page FROM chosen);

-- name: forget_links
DELETE FROM links WHERE page IN (SELECT page FROM chosen);

-- name: forget_looks
DELETE FROM looks WHERE source IN (SELECT page FROM chosen);

-- name: forget_finds
DELETE FROM finds WHERE page IN (SELECT page FROM chosen) OR source IN (SELECT page FROM chosen);

-- name: forget_words
DELETE FROM search WHERE rowid IN (SELECT page FROM chosen);

-- name: forget_pages
DELETE FROM pages WHERE id IN (SELECT page FROM chosen);

-- name: choose_ids
INSERT INTO chosen SELECT value FROM json_each(:ids);

-- name: choose_stated
INSERT OR IGNORE INTO chosen SELECT page FROM stated;

-- name: choose_before
INSERT OR IGNORE INTO chosen SELECT id FROM before;

-- name: choose_named
INSERT OR IGNORE INTO chosen SELECT page FROM named;

-- name: charge
WITH {scopes}
UPDATE pages SET
    cost = wanted.cost,
    revision = (SELECT meta.value FROM meta WHERE name = 'revision')
FROM (
    SELECT
        id, coalesce(own_cost, json_extract(:costs, '$[' || {first_scope} || ']'), 1.0) AS cost
    FROM pages WHERE revision > :after
) AS wanted
WHERE pages.id = wanted.id AND pages.cost <> wanted.cost;

-- name: scopes
scope AS MATERIALIZED (
    SELECT
        key,
        json_extract(value, '$[0]') AS url,
        json_extract(value, '$[1]') AS host,
        json_extract(value, '$[2]') AS tag
    FROM json_each(:scopes)
)

-- name: first_scope
(
    SELECT min(scope.key) FROM scope
    WHERE pages.url GLOB scope.url
        AND (scope.tag IS NULL OR EXISTS (
            SELECT 1 FROM json_each(pages.tags) AS tags WHERE tags.value = scope.tag
        ))
        AND (scope.host IS NULL OR pages.host GLOB scope.host OR (
            rtrim(pages.host, '0123456789') GLOB '*:'  -- without its port
            AND rtrim(rtrim(pages.host, '0123456789'), ':') GLOB scope.host
        ))
)

-- name: first_scopes
WITH {scopes}
SELECT json_group_array(place) FROM (
    SELECT coalesce({first_scope}, -1) AS place
    FROM json_each(:ids) AS asked LEFT JOIN pages ON pages.id = asked.value
    ORDER BY asked.key
);

-- name: revision
SELECT value FROM meta WHERE name = 'revision';

-- name: stated_table
CREATE TEMP TABLE stated (
    key INTEGER PRIMARY KEY, page INTEGER, at INTEGER, text TEXT, told TEXT
);

-- name: clear_stated
DELETE FROM stated;

-- name: insert_stated
INSERT INTO pages (url, host, kind, added, revision)
SELECT
    json_extract(asked.value, '$[0]'),
    json_extract(asked.value, '$[1]'),
    json_extract(asked.value, '$[2]'),
    json_extract(asked.value, '$[3]'),
    (SELECT meta.value FROM meta WHERE name = 'revision')
FROM json_each(:rows) AS asked
WHERE NOT EXISTS (SELECT 1 FROM pages WHERE url = json_extract(asked.value, '$[0]'));

-- name: state_rows
INSERT INTO stated
SELECT
    asked.key,
    pages.id,
    json_extract(asked.value, '$[3]'),
    json_extract(asked.value, '$[4]'),
    json_extract(asked.value, '$[5]')
FROM json_each(:rows) AS asked
    CROSS JOIN pages ON pages.url = json_extract(asked.value, '$[0]')
WHERE json_extract(asked.value, '$[4]') IS NOT (
    SELECT signals.value FROM signals
    WHERE signals.page = pages.id AND signals.kind = :kind
    ORDER BY signals.at DESC, signals.id DESC
    LIMIT 1
);

-- name: signal_stated
INSERT INTO signals (page, at, kind, value)
SELECT page, at, :kind, text FROM stated ORDER BY key;

-- name: tell_pages
UPDATE pages SET told = stated.told FROM stated
WHERE stated.page = pages.id
    AND stated.at > coalesce(last_answer, :never)
    AND stated.at >= coalesce(json_extract(pages.told, '$.at'), :never);

-- name: drop_words
DELETE FROM search
WHERE rowid IN (SELECT page FROM chosen) AND rowid NOT IN (
    SELECT page FROM words WHERE page IN (SELECT page FROM chosen)
);

-- name: add_words
INSERT OR REPLACE INTO search (rowid, title, about, url)
SELECT page, title, about, url FROM words
WHERE page IN (SELECT page FROM chosen) AND NOT EXISTS (
    SELECT 1 FROM search_content WHERE id = words.page AND c0 = title AND c1 = about
);

-- name: search
SELECT
    pages.id AS page, pages.url, last_visit, last_answer, told,
    coalesce(fields, json_extract(told, '$.value.fields'), '{}') AS fields
FROM search
    JOIN pages ON pages.id = search.rowid
    LEFT JOIN "values" AS latest ON latest.visit = pages.value
WHERE search MATCH :words
    AND alias IS NULL AND NOT paused AND NOT unlisted AND NOT idle AND pages.kind IS NOT 'source'
ORDER BY search.rank, pages.id
LIMIT :limit;

-- name: latest_value
SELECT latest.kind, latest.value, fields
FROM pages JOIN "values" AS latest ON latest.visit = pages.value
WHERE pages.id = :page;

-- name: changes
SELECT
    changes.seq, found.at, found.page, url, tags,
    iif(observations.visit IS NULL, 1, observations.changed) AS changed,
    found.kind, found.value, found.fields,
    earlier.kind AS earlier_kind, earlier.value AS earlier_value, earlier.fields AS earlier_fields
FROM changes
    JOIN "values" AS found ON found.visit = changes.visit
    JOIN pages ON pages.id = found.page
    LEFT JOIN observations ON observations.visit = changes.visit
    LEFT JOIN "values" AS earlier ON earlier.visit = (
        SELECT visit FROM "values" AS past
        WHERE past.page = found.page AND past.at <= found.at
            AND (past.at, past.visit) < (found.at, found.visit)
        ORDER BY past.at DESC, past.visit DESC
        LIMIT 1
    )
WHERE seq > :after
ORDER BY seq
LIMIT :limit;

-- name: last_change
SELECT coalesce(max(seq), 0) FROM changes;

-- name: set_done
INSERT INTO meta (name, value) VALUES ('done ' || :reader, :seq)
ON CONFLICT (name) DO UPDATE SET value = excluded.value;

-- name: done
SELECT coalesce(max(value), 0) FROM meta WHERE name = 'done ' || :reader;

-- name: content
SELECT body, content_type
FROM pages JOIN content ON content.visit = pages.content
WHERE pages.id = :page;

-- name: summary
SELECT
    count(*) AS pages,
    count(last_visit) AS visited,
    count(DISTINCT host) AS hosts,
    coalesce(sum(visits), 0) AS visits,
    coalesce(sum(visits - failures), 0) AS answered,
    coalesce(sum(changes), 0) AS changes,
    coalesce(sum(
        paused OR unlisted OR alias IS NOT NULL
        OR (idle >= :patience AND kind IS NOT 'source')  -- no source is dropped
    ), 0) AS resting,
    (SELECT min(at) FROM observations) AS first,
    (SELECT max(at) FROM observations) AS last
FROM pages;

-- name: count_by_status
SELECT status, count(*) FROM pages WHERE status IS NOT NULL GROUP BY status;

-- name: scan_pages
SELECT
    pages.id AS page_id, url, pages.kind, host, tags, max_interval, demand,
    coalesce(fields, json_extract(told, '$.value.fields'), '{}') AS fields
FROM pages LEFT JOIN "values" AS latest ON latest.visit = pages.value

-- name: page_facts
SELECT
    coalesce(pages.host, '') AS host,
    coalesce(fields, json_extract(told, '$.value.fields'), '{}') AS fields
FROM json_each(:ids) AS asked
    LEFT JOIN pages ON pages.id = asked.value
    LEFT JOIN "values" AS latest ON latest.visit = pages.value
ORDER BY asked.key;

-- name: history
SELECT
    observations.visit, observations.page, observations.at, status, coalesce(changed, -1),
    coalesce(since, :never), age_s, purpose, propensity, chance,
    iif(typeof(value) = 'text' AND length(value) <= 200, value, NULL)
FROM observations LEFT JOIN "values" AS found ON found.visit = observations.visit
ORDER BY observations.at, observations.visit;

-- name: scan_visits
SELECT
    observations.page AS page_id, observations.at, purpose, NULL AS policy, propensity, status,
    changed, found.value, age_s, observations.code, observations.fault, chance
FROM observations LEFT JOIN "values" AS found ON found.visit = observations.visit

-- name: scan_values
SELECT page AS page_id, at, value FROM "values"

-- name: scan_signals
SELECT page AS page_id, at, kind, value FROM signals

-- name: scan_links
SELECT source AS source_id, page AS page_id, appeared, vanished FROM links

-- name: scan_demand
SELECT page AS page_id, at, sum(clicks) AS clicks, sum(impressions) AS impressions FROM demand

-- name: scan_requests
SELECT page AS page_id, at, score, propensity, sent, visit FROM requests

-- name: prune_observations
DELETE FROM observations WHERE visit IN (
    SELECT visit FROM observations WHERE at < :before ORDER BY at LIMIT :limit
);

-- name: prune_signals
DELETE FROM signals WHERE id IN (
    SELECT id FROM signals WHERE at < :before ORDER BY at LIMIT :limit
);

-- name: prune_looks
DELETE FROM looks WHERE seq IN (
    SELECT seq FROM looks AS old
    WHERE at < :before AND EXISTS (SELECT 1 FROM looks WHERE source = old.source AND at > old.at)
    ORDER BY at LIMIT :limit
);

-- name: prune_finds
DELETE FROM finds WHERE seq IN (
    SELECT seq FROM finds WHERE at < :before ORDER BY seq LIMIT :limit
);

-- name: prune_demand
DELETE FROM demand WHERE id IN (
    SELECT id FROM demand WHERE at < :before ORDER BY at LIMIT :limit
);

-- name: prune_requests
DELETE FROM requests WHERE id IN (
    SELECT id FROM requests WHERE at < :before ORDER BY at LIMIT :limit
);

-- name: prune_gauges
DELETE FROM gauges WHERE at IN (SELECT at FROM gauges WHERE at < :before ORDER BY at LIMIT :limit);

-- name: prune_samples
DELETE FROM samples WHERE visit IN (
    SELECT visit FROM samples WHERE at < :before ORDER BY at LIMIT :limit
);

-- name: insert_gauge
INSERT OR REPLACE INTO gauges (
    at, days, pages, demand, stale, stale_demand, coins, coin_demand, visits
) VALUES (:at, :days, :pages, :demand, :stale, :stale_demand, :coins, :coin_demand, :visits);

-- name: insert_samples
INSERT OR REPLACE INTO samples (visit, at, stale, demand)
SELECT json_extract(value, '$[0]'), :at, json_extract(value, '$[1]'), json_extract(value, '$[2]')
FROM json_each(:rows);

-- name: gauges
SELECT * FROM gauges WHERE at >= :start AND at < :end ORDER BY at;

-- name: findings
-- An urgent visit may have come before the one that explores: the first of the tick tells.
SELECT
    drawn.page, samples.at, drawn.propensity, drawn.chance, samples.stale, samples.demand,
    CASE
        WHEN seen.status IN ('gone', 'soft_404') THEN coalesce((
            SELECT before.status IN ('ok', 'not_modified') FROM observations AS before
            WHERE before.page = seen.page AND before.at < seen.at
                AND before.status IN ('ok', 'not_modified', 'gone', 'soft_404')
            ORDER BY before.at DESC LIMIT 1
        ), 1)
        WHEN seen.status NOT IN ('ok', 'not_modified') THEN NULL
        WHEN seen.since IS NULL THEN 1
        ELSE seen.changed
    END AS found
FROM samples
JOIN observations AS drawn ON drawn.visit = samples.visit
JOIN observations AS seen ON seen.visit = (
    SELECT first.visit FROM observations AS first
    WHERE first.page = drawn.page AND first.at >= min(samples.at, drawn.at)
    ORDER BY first.at LIMIT 1
)
WHERE samples.at >= :start AND samples.at < :end
ORDER BY samples.visit;

-- name: clear_panel
DELETE FROM panel;

-- name: insert_panel
INSERT INTO panel (page, stratum, weight, every, since, until)
SELECT
    json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]'),
    json_extract(value, '$[3]'), json_extract(value, '$[4]'), json_extract(value, '$[5]')
FROM json_each(:rows);

-- name: panel
SELECT page, stratum, weight, every, since, until FROM panel
WHERE page NOT IN (SELECT page FROM forgotten) ORDER BY page;

-- name: sightings
SELECT
    seen.page, seen.at, seen.purpose,
    iif(seen.status IN ('ok', 'not_modified'), seen.digest, NULL) AS digest
FROM panel JOIN observations AS seen ON seen.page = panel.page
WHERE seen.at <= coalesce(panel.until, seen.at) AND seen.at >= coalesce((
    SELECT max(first.at) FROM observations AS first
    WHERE first.page = panel.page AND first.at < panel.since
        AND first.status IN ('ok', 'not_modified')
), panel.since)
ORDER BY seen.page, seen.at, seen.visit;
