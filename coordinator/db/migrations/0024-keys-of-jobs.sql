-- A request that is sent again under its key is answered with its job, as long as that is kept.
alter table bulk_jobs
  add column idempotency_key text collate "C",
  -- SHA-256 of the request.
  add column request_hash bytea,
  add constraint key_has_its_request check ((idempotency_key is null) = (request_hash is null));
create unique index bulk_jobs_by_key on bulk_jobs (idempotency_key, org_id) where idempotency_key is not null;
