-- An environment that was deleted and made again under its name is another one: a connection keeps the id of its own.
-- Where that is gone already, an id that none has.
alter table connections add column environment_id id;
update connections c
set environment_id = coalesce(
  (select e.id from environments e where e.org_id = c.org_id and e.name = c.environment),
  'env_' || repeat('0', 26)
)
where c.environment is not null;
