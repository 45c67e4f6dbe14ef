-- breaking
-- Coordinators of the previous version would go on adding 1000 to `replays`, which then looked like so many losses.

-- How often its process was lost with its agent while it was led back to where the run had stood. `replays`, which held
-- this in thousands, counts losses by the program alone now.
alter table runs add column cut_replays int not null default 0;
update runs set cut_replays = replays / 1000, replays = replays % 1000 where replays >= 1000;
