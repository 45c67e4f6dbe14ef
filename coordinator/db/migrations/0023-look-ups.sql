-- Looks that read the rows of all orgs, or all that was ever asked, until now. None of these indexes begins with the
-- org: while tables are small, one that does is taken for whatever else is asked of an org.

-- An agent that asks for a bundle: does a version of its org have it?
create index workflow_versions_by_bundle on workflow_versions (bundle_digest, org_id, id);
-- The copies of a run that is erased.
create index org_events_by_run on org_events (run_id);
-- The sweep walks the open questions in the order of their runs, past the answered ones of years.
create index inputs_open_by_run on inputs (run_id, n) where status = 'open';
