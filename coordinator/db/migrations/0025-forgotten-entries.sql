-- How many entries of earlier attempts the run has forgotten (`onCrash: fresh`): they keep their numbers, and do not
-- count for what a journal may have.
alter table runs add column forgotten_entries int not null default 0;
