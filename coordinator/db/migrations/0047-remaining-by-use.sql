-- In which environment and pool each of the few unfinished runs before the mark is, so that a deletion of either finds
-- what stands against it: an org may have half a million others. Null in `pool_id`: written before this, or by a
-- coordinator of before. The sweep fills that in, piece by piece, as triggers of all would wait for it here.
alter table runs_remaining
  add column environment text,
  add column pool_id id;
-- Not the org first: the planner might as well read all that the org has, by the index of that.
create index runs_remaining_by_environment on runs_remaining (environment, org_id, run_id)
  where environment is not null;
create index runs_remaining_by_pool on runs_remaining (pool_id, run_id) where pool_id is not null;
create index runs_remaining_incomplete on runs_remaining (org_id, run_id) where pool_id is null;
