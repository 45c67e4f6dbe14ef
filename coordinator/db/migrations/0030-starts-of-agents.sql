-- Which process of the agent speaks for the runner, and with which one the database was last brought to one mind. A
-- start that could not be written down, as on a full disk, hands its name on to the next process. The folder of its
-- state without the number of its disk, which is another one after a boot. Null where the agent does not say it.
alter table runners
  add column instance_process text,
  add column instance_folder text,
  add column reconciled_process text;
