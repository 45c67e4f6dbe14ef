-- Counts the hellos of a runner's agent that were let in. What a connection says of the agent counts as long as there
-- was no hello after its own.
alter table runners add column connection int not null default 0;
