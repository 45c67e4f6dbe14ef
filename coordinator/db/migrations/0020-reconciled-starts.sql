-- The start of the agent that the database was last brought to one mind with, and the boot of its machine: what the
-- runner has is of that one. Null where it has no name. It follows `instance` at the end of a hello, so that of a hello
-- that is cut off nothing is left out: the next one begins at the same start again.
alter table runners
  add column reconciled_instance text,
  add column reconciled_boot text;
-- A runner that its agent has closed is open again when the agent comes: one that is still being stopped says so again.
update runners
set reconciled_instance = instance, reconciled_boot = instance_boot
where instance_host is not null
  and id not in (select runner_id from runner_intake where state = 'draining' and by_kind = 'agent');
