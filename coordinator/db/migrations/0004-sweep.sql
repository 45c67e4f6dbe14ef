-- What the sweeper of runs and /metrics look at.

-- The few runs that are not over among the many that are. An index with that condition would name a column that each run changes,
-- so that its last update could not be HOT: measured, an eighth of the work of a short run. So runs up to the mark were looked at
-- once, and those that had not finished by then stand in a table of their own; behind the mark, which follows a few minutes late,
-- all are looked at.
create table sweep_mark (
  is_only  boolean primary key default true check (is_only),
  run_id   id not null
);
insert into sweep_mark (run_id) values ('');
create table runs_remaining (
  run_id  id primary key
) with (autovacuum_vacuum_scale_factor = 0.05);

-- What somebody still waits for, among the many entries that are done.
create index journal_open on journal (run_id, n) where state = 'open';

alter table run_queue add column entered_at timestamptz not null default now();
