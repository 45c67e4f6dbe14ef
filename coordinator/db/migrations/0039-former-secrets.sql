-- Several former secrets of one thing, each with an end of its own. Coordinators of the version before keep to
-- `previous`, and take all of them.
alter table owned_secrets
  drop constraint owned_secrets_slot_check,
  drop constraint owned_secrets_check,
  add constraint owned_secrets_slot_check
    check (slot in ('current', 'previous', 'previous-2', 'previous-3', 'previous-4', 'previous-5')),
  add constraint owned_secrets_check check ((slot = 'current') = (ends_at is null));
