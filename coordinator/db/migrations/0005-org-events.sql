-- What happens to the runs of an org, for those who follow it live: see coordinator/events/org-log.ts.

-- The log of each org that somebody has followed.
create table org_logs (
  org_id      id primary key references orgs,
  -- Part of every position, and drawn anew when the log begins anew: nobody takes one for the other.
  series      text collate "C" not null,
  -- Events are written until then: by everybody whose statement begins later than this row was committed.
  kept_until  timestamptz not null,
  -- Those who had begun before have ended.
  is_whole    boolean not null default false,
  -- The last position that was given.
  position    bigint not null default 0,
  -- Of the events up to this position some are gone.
  gone_to     bigint not null default 0
);

-- Copies of lifecycle events, in the transactions that write these. No foreign key: each would be looked up.
create table org_events (
  id          bigint generated always as identity,
  org_id      id not null,
  run_id      id not null,
  cursor      int not null,
  -- Milliseconds since the epoch.
  at          bigint not null,
  type        text collate "C" not null,
  data        text not null,
  written_at  timestamptz not null default now(),
  -- Given to what is committed, by whoever reads: numbers that were taken before a commit are not in the order of
  -- commits, and who reads from the last one on would miss those that are committed later.
  position    bigint
) with (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.2);
create index org_events_fresh on org_events (org_id, id) where position is null;
create unique index org_events_by_position on org_events (org_id, position) where position is not null;
