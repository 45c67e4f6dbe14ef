-- Which history of the database this is. A backup that is restored begins another one: numbers go on from the backup,
-- and what was given out after it is given out again under the same numbers. See coordinator/db/cluster.ts.
create table cluster (
  is_only  boolean primary key default true check (is_only),
  -- Drawn at random: two restores of one backup would count to the same number.
  epoch    text collate "C" not null,
  -- The server and the database that it was drawn for; '' until a coordinator has looked.
  system   text not null default ''
);
insert into cluster (epoch) values (substr(md5(random()::text), 1, 16));
