-- Orgs take turns at what is due: one that had 170,000 timers due kept the others waiting for minutes. The default is
-- for coordinators of the version before, whose timers take a turn of their own.
alter table timers add column org_id text collate "C" not null default '';
update timers t set org_id = r.org_id from runs r where r.id = t.run_id;
create index timers_of_org_by_due on timers (org_id, due_at);
drop index timers_by_due;
