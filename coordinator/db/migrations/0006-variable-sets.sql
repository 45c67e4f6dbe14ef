-- Sets that no head hands out any more. They go when no unfinished run keeps one; see coordinator/environments/store-sets.ts.
alter table variable_sets add column retired_at timestamptz;
create index variable_sets_current on variable_sets (org_id) where retired_at is null;
create index variable_sets_retired on variable_sets (retired_at) where retired_at is not null;
create index variable_heads_by_set on variable_heads (set_id);
