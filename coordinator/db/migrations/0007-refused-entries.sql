-- Since when the database refuses what the agent reports of a run, though nothing is wrong with it.
alter table placements add column refused_since timestamptz;
