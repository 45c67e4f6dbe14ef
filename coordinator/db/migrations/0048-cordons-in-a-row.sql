-- How many times in a row the coordinator itself has cordoned the runner: each lasts longer than the one before. A
-- coordinator of before neither reads nor counts it.
alter table runner_intake add column cordons int not null default 0;
