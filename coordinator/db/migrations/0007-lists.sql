-- What is rare among what is common, newest first.

-- No run may be written between what is copied below and the commit. A million runs take some three seconds.
lock table runs in share row exclusive mode;

-- Who has done it, and what was done. Operations are found by their group, which stands before the dot; there are few in one.
create index audit_log_by_actor on audit_log (org_id, actor_id, id);
create index audit_log_by_group on audit_log (org_id, split_part(action, '.', 1), id);

-- Written once, with the run: neither costs anything where a run has no tags and no environment. An index of the array itself would
-- not be in the order of the list.
create table run_tags (
  org_id  id not null,
  tag     text collate "C" not null,
  run_id  id not null,
  primary key (org_id, tag, run_id)
);
insert into run_tags (org_id, tag, run_id)
select distinct org_id, unnest(tags), id
from runs;
create index runs_by_environment on runs (org_id, environment, id) where environment is not null;

-- Runs that have failed or were cancelled, which is what people look for: few among those that are completed. For the reason that
-- stands in migration 0004 no index of the runs can name their status.
create table runs_unsuccessful (
  org_id  id not null,
  run_id  id not null,
  status  text not null,
  primary key (org_id, run_id)
);
insert into runs_unsuccessful (org_id, run_id, status)
select org_id, id, status
from runs
where status in ('failed', 'cancelled');
