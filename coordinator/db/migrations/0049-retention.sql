-- How long an org keeps what has ended, in days. Null: for ever, or as long as the operator lets all of them.
create table retention (
  org_id           id primary key,
  runs_days        int check (runs_days > 0),
  deliveries_days  int check (deliveries_days > 0),
  -- Nothing is deleted before: whoever has mistyped a number has time to notice.
  acts_at          timestamptz not null default now(),
  -- Runs up to this one were looked at: they are deleted, or stand in `retention_late`.
  runs_seen        id not null default ''
);

-- Runs that were not yet to be deleted when they were looked at: they ended later than others of their age, have not
-- ended, or have called what has not. Each stands here once, and moves to its next look.
create table retention_late (
  org_id   id not null,
  look_at  timestamptz not null,
  run_id   id not null,
  primary key (org_id, look_at, run_id)
);

-- Keys in the object store that no row names any more, until what lies there is gone.
create table object_removals (
  key  text collate "C" primary key
);
