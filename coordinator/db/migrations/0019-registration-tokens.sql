-- Registration tokens are listed by their pool, and end with the key or session that has made them.
create index registration_tokens_by_pool on registration_tokens (pool_id, id);
create index registration_tokens_by_author on registration_tokens (created_by, id);
-- Those of keys and sessions that were revoked before.
delete from registration_tokens
where created_by in (
  select id from api_keys where revoked_at is not null
  union all
  select id from operator_sessions where revoked_at is not null
);
