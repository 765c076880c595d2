-- Batches come as one JSON array, :rows, because SQLite then steps through all of them without
-- asking for Python's lock; long texts and bodies come as one blob, :packed, cut by substr.

-- name: bump_revision
UPDATE meta SET value = value + 1 WHERE name = 'revision';

-- name: insert_pages
INSERT OR IGNORE INTO pages (url, host, kind, tags, max_interval, demand, added, revision)
SELECT
    json_extract(value, '$[0]'),
    json_extract(value, '$[1]'),
    json_extract(value, '$[2]'),
    json_extract(value, '$[3]'),
    json_extract(value, '$[4]'),
    json_extract(value, '$[5]'),
    :at,
    (SELECT meta.value FROM meta WHERE name = 'revision')
FROM json_each(:rows);

-- name: edit_pages
INSERT INTO pages (url, host, kind, tags, max_interval, demand, added, revision)
SELECT
    json_extract(value, '$[0]'),
    json_extract(value, '$[1]'),
    json_extract(value, '$[2]'),
    json_extract(value, '$[3]'),
    json_extract(value, '$[4]'),
    json_extract(value, '$[5]'),
    :at,
    (SELECT meta.value FROM meta WHERE name = 'revision')
FROM json_each(:rows)
WHERE true
ON CONFLICT (url) DO UPDATE SET
    revision = excluded.revision,
    kind = coalesce(excluded.kind, kind),
    max_interval = coalesce(excluded.max_interval, max_interval),
    demand = coalesce(excluded.demand, demand),
    tags = (
        SELECT json_group_array(tag) FROM (
            SELECT value AS tag FROM json_each(pages.tags)
            UNION
            SELECT value AS tag FROM json_each(excluded.tags)
            ORDER BY tag
        )
    )
WHERE excluded.kind IS NOT NULL
    OR excluded.max_interval IS NOT NULL
    OR excluded.demand IS NOT NULL
    OR excluded.tags <> '[]';

-- name: edited_pages
SELECT json_group_array(id), (SELECT value FROM meta WHERE name = 'revision')
FROM (SELECT id FROM pages WHERE revision > :after ORDER BY +id);

-- name: page_columns
SELECT
    json_group_array(host),
    json_group_array(added),
    json_group_array(coalesce(last_visit, :never)),
    json_group_array(json(printf('%!.17g', coalesce(demand, 1.0)))),
    json_group_array(json(printf('%!.17g', cost))),
    json_group_array(iif(max_interval IS NULL, NULL, json(printf('%!.17g', max_interval))))
FROM (
    SELECT host, added, last_visit, demand, cost, max_interval
    FROM json_each(:ids) AS asked CROSS JOIN pages ON pages.id = asked.value
    ORDER BY asked.key
);

-- name: targets
SELECT json_group_array(json_object(
    'page', id, 'url', url, 'host', host, 'kind', kind, 'etag', etag,
    'last_modified', last_modified, 'digest', digest, 'seen', last_answer
))
FROM (
    SELECT pages.id, url, host, kind, etag, last_modified, digest, last_answer
    FROM json_each(:ids) AS asked CROSS JOIN pages ON pages.id = asked.value
    ORDER BY asked.key
);

-- name: visit_view
CREATE TEMP VIEW visit AS SELECT
    NULL AS visit, NULL AS page, NULL AS at, NULL AS purpose, NULL AS propensity, NULL AS status,
    NULL AS code, NULL AS changed, NULL AS since, NULL AS age_s, NULL AS digest, NULL AS fault,
    NULL AS size, NULL AS elapsed_s, NULL AS etag, NULL AS last_modified,
    NULL AS value,     -- JSON: [kind, fields, text if short, start and size if long]
    NULL AS content,   -- JSON: [type, start, size]
    NULL AS hosts,     -- JSON: [[host, next_at, strikes, code, until, start, size], …]
    NULL AS packed;    -- what the starts and sizes point into

-- name: visit_trigger
CREATE TEMP TRIGGER visit_trigger INSTEAD OF INSERT ON visit
WHEN NOT EXISTS (SELECT 1 FROM observations WHERE visit = NEW.visit)
BEGIN
    INSERT INTO observations (
        visit, page, at, purpose, propensity, status, code, changed, since, age_s, digest, fault,
        size, elapsed_s
    ) VALUES (
        NEW.visit, NEW.page, NEW.at, NEW.purpose, NEW.propensity, NEW.status, NEW.code,
        NEW.changed, NEW.since, NEW.age_s, NEW.digest, NEW.fault, NEW.size, NEW.elapsed_s
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
        content = iif(NEW.content IS NULL, content, NEW.visit)
    WHERE id = NEW.page;

    SELECT RAISE(ABORT, 'a visit to a page that is not in the store cannot be recorded')
    WHERE changes() = 0;
END;

-- name: record
INSERT INTO visit (
    visit, page, at, purpose, propensity, status, code, changed, since, age_s, digest, fault,
    size, elapsed_s, etag, last_modified, value, content, hosts, packed
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
    substr(:packed, json_extract(value, '$[19]'), json_extract(value, '$[20]'))
FROM json_each(:rows);

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
    fault, etag, last_modified
);

-- name: keep_states
INSERT INTO before
SELECT
    pages.id, last_visit, last_answer, last_change, pages.value, pages.digest, latest.at, status,
    fault, etag, last_modified
FROM pages LEFT JOIN "values" AS latest ON latest.visit = pages.value
WHERE last_visit IS NOT NULL;

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
    last_change = iif(
        before.last_change >= pages.last_change, before.last_change, pages.last_change
    ),
    value = iif(before.found >= latest.at, before.value, pages.value),
    digest = iif(before.found >= latest.at, before.digest, pages.digest)
FROM before, pages AS now LEFT JOIN "values" AS latest ON latest.visit = now.value
WHERE pages.id = before.id AND now.id = before.id;

-- name: forget_states
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
    json_group_array(iif(propensity IS NULL, NULL, json(printf('%!.17g', propensity))))
FROM (
    SELECT * FROM observations
    WHERE visit IN (SELECT value FROM json_each(:visits))
    ORDER BY visit
);

-- name: remember
INSERT OR REPLACE INTO state (id, state) VALUES (0, :state);

-- name: recall
SELECT state FROM state;

-- name: insert_signals
INSERT INTO signals (page, at, kind, value)
SELECT
    json_extract(value, '$[0]'),
    json_extract(value, '$[1]'),
    json_extract(value, '$[2]'),
    json_extract(value, '$[3]')
FROM json_each(:rows);

-- name: page
SELECT
    pages.id AS page, url, host, pages.kind, tags, added, last_visit, last_answer, last_change,
    status, fault, latest.value, coalesce(fields, '{}') AS fields, visits, changes, failures,
    max_interval, demand
FROM pages LEFT JOIN "values" AS latest ON latest.visit = pages.value
WHERE url = :url;

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
    (SELECT min(at) FROM observations) AS first,
    (SELECT max(at) FROM observations) AS last
FROM pages;

-- name: count_by_status
SELECT status, count(*) FROM pages WHERE status IS NOT NULL GROUP BY status;

-- name: scan_pages
SELECT
    pages.id AS page_id, url, pages.kind, host, tags, max_interval, demand,
    coalesce(fields, '{}') AS fields
FROM pages LEFT JOIN "values" AS latest ON latest.visit = pages.value

-- name: scan_visits
SELECT
    observations.page AS page_id, observations.at, purpose, NULL AS policy, propensity, status,
    changed, found.value, age_s
FROM observations LEFT JOIN "values" AS found ON found.visit = observations.visit

-- name: scan_values
SELECT page AS page_id, at, value FROM "values"

-- name: scan_signals
SELECT page AS page_id, at, kind, value FROM signals

-- name: prune_observations
DELETE FROM observations WHERE visit IN (
    SELECT visit FROM observations WHERE at < :before ORDER BY at LIMIT :limit
);

-- name: prune_signals
DELETE FROM signals WHERE id IN (
    SELECT id FROM signals WHERE at < :before ORDER BY at LIMIT :limit
);
