-- Which job of an org has its next turn: the one with the earliest time, when that is past. The list of them stood in a
-- job of graphile-worker, and was lost with whoever executed it.
alter table bulk_jobs add column turn_at timestamptz not null default now();
create index bulk_jobs_turns on bulk_jobs (org_id, turn_at, id) where finished_at is null;
