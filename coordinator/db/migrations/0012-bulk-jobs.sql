-- What is done to many runs at once, in pieces: see coordinator/bulk.

create table bulk_jobs (
  id           id primary key,
  org_id       id not null references orgs,
  kind         text collate "C" not null check (kind in ('bulk-cancel', 'bulk-retry', 'workflow-delete')),
  -- As the list of runs takes it; names are resolved.
  filter       json not null,
  -- Runs are found and counted, and nothing is done to them.
  dry_run      boolean not null default false,
  reason       text not null default '',
  -- Who asked, as the audit log wants it.
  author       json not null,
  status       text collate "C" not null default 'running'
                 check (status in ('running', 'completed', 'cancelled', 'failed')),
  error        text,
  -- The oldest run that was found, from the newest on; whether all are.
  listed_to    id,
  is_listed    boolean not null default false,
  matched      int not null default 0,
  done         int not null default 0,
  failed       int not null default 0,
  created_at   timestamptz not null default now(),
  deadline_at  timestamptz not null,
  finished_at  timestamptz,
  constraint finished_unless_running check ((finished_at is null) = (status = 'running'))
);
create index bulk_jobs_by_org on bulk_jobs (org_id, id);
create index bulk_jobs_finished on bulk_jobs (finished_at) where finished_at is not null;
-- One of a kind at a time, but of workflows that are deleted any number.
create unique index bulk_jobs_under_way on bulk_jobs (org_id, kind, dry_run)
  where finished_at is null and kind <> 'workflow-delete';

-- Runs that were found for a job. What was done to one takes it away, in the same transaction where that cannot be done
-- twice; one that it could not be done to stays, with the code of the reason.
create table bulk_job_runs (
  job_id  id not null references bulk_jobs on delete cascade,
  run_id  id not null,
  error   text collate "C",
  primary key (job_id, run_id)
) with (autovacuum_vacuum_scale_factor = 0.05);
create index bulk_job_runs_failed on bulk_job_runs (job_id, error) where error is not null;
