-- A secret that was set as a variable by mistake must not stay in a log that nobody can purge. New entries tell the
-- length of a value only; earlier entries lose theirs here, the only time that the log is changed.
alter table audit_log disable trigger audit_log_is_append_only;

update audit_log
set before = (before::jsonb - 'value')::json,
    after  = (after::jsonb - 'value')::json
where action in ('variables.set', 'variables.delete');

alter table audit_log enable trigger audit_log_is_append_only;
