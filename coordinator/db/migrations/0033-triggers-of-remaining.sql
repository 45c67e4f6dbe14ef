-- What has started each of the few unfinished runs before the mark, so that a schedule finds its own among them: it may
-- have thousands of newer runs, and its org thousands of unfinished ones. '' where the run names nothing; null what a
-- coordinator of before has written, which the next sweep fills in.
alter table runs_remaining add column trigger_id text;
update runs_remaining m
set trigger_id = coalesce(r.trigger_id, '')
from runs r
where r.id = m.run_id;
create index runs_remaining_by_trigger on runs_remaining (trigger_id, run_id);
