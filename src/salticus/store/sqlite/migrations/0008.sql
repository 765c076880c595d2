-- The run state may come in many pieces.

ALTER TABLE state RENAME TO whole_state;

CREATE TABLE state (
    id INTEGER PRIMARY KEY,
    state BLOB NOT NULL
);

INSERT INTO state (state) SELECT state FROM whole_state;

DROP TABLE whole_state;
