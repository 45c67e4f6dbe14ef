-- Lists of questions by their state: by the org and the time alone they read the questions of all orgs, or all that the
-- org was ever asked for the few that timed out. It does not begin with the org: see 0023.
create index inputs_by_status on inputs (status, org_id, id);
drop index inputs_by_org;
drop index inputs_open;
