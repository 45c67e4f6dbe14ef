-- Runs whose input, output and events were deleted. What stays of one is what others point to: its state, its times and
-- what was metered.

alter table runs
  add column deleted_at timestamptz,
  add column deleted_by text;
-- Not looked at for the rows that are there: none is deleted, and so they keep the former rule.
alter table runs drop constraint failed_says_why;
alter table runs add constraint failed_says_why
  check ((error is not null) = (status = 'failed' and deleted_at is null)) not valid;

-- Those of an org, newest first, as few are among all.
create table runs_deleted (
  org_id  id not null,
  run_id  id not null,
  primary key (org_id, run_id)
);
