-- Workflows that are disabled, that are deleted and may be restored, and that are gone for good.

alter table workflows
  add column disabled_at timestamptz,
  -- Id of the key or session, as in workflow_versions.created_by.
  add column disabled_by text,
  add column deleted_by  text,
  -- When it could no longer be restored, and what hung on it went. The row stays for the name that its runs show.
  add column purged_at   timestamptz,
  add constraint disabled_by_somebody check ((disabled_at is null) = (disabled_by is null)),
  add constraint purged_only_when_deleted check (purged_at is null or deleted_at is not null);
create index workflows_deleted on workflows (org_id, id) where deleted_at is not null;
create index workflows_to_purge on workflows (deleted_at) where deleted_at is not null and purged_at is null;
