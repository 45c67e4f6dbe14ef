-- Attempts that were lost, or that a person has had begun anew: what they were given is no reason of their end, and the
-- next attempt goes the same way. All others threw, or ended under a coordinator of the version before.
alter table runs add column lost_attempts int[] not null default '{}';
