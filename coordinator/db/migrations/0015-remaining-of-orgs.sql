-- A list of the unfinished runs of one org walked those of all orgs: 0.9 s beside 200,000 queued ones of another.
alter table runs_remaining add column org_id id not null default '';
update runs_remaining m set org_id = r.org_id from runs r where r.id = m.run_id;
create index runs_remaining_of_org on runs_remaining (org_id, run_id);
