-- Deliveries: where other systems post, what they posted, and what became of it. See coordinator/inbound.

-- Secrets of things that belong to no environment, by the id of the thing; sealed as those of environments are.
create table owned_secrets (
  owner_id  id not null,
  -- previous: that of before the last rotation, which serves until `ends_at`.
  slot      text collate "C" not null check (slot in ('current', 'previous')),
  org_id    id not null references orgs,
  sealed    text not null,
  ends_at   timestamptz,
  primary key (owner_id, slot),
  check ((slot = 'previous') = (ends_at is not null))
);

-- One of each workflow, from its first deploy on. Without a secret it takes nothing.
create table webhooks (
  id           id primary key,
  org_id       id not null references orgs,
  workflow_id  id not null unique references workflows,
  auth         text collate "C" not null default 'hmac' check (auth in ('hmac', 'bearer')),
  created_at   timestamptz not null default now(),
  rotated_at   timestamptz
);
insert into webhooks (id, org_id, workflow_id)
select 'hook_' || substr(id, 4), org_id, id from workflows;

create table connections (
  id           id primary key,
  org_id       id not null references orgs,
  name         text collate "C" not null,
  kind         text collate "C" not null,
  -- What of its scheme people choose: hmac, bearer, event, dedupe.
  scheme       json not null,
  environment  text,
  enabled      boolean not null default true,
  created_at   timestamptz not null default now(),
  created_by   text not null,
  rotated_at   timestamptz,
  unique (org_id, name)
);

-- Which deliveries start a workflow, as its current version says. By the name of the connection, which may not be there
-- yet.
create table workflow_connections (
  workflow_id  id not null references workflows,
  n            int not null,
  org_id       id not null,
  connection   text collate "C" not null,
  events       text[] not null,
  filter       json not null,
  environment  text,
  primary key (workflow_id, n)
);
create index workflow_connections_by_name on workflow_connections (org_id, connection, workflow_id, n);
insert into workflow_connections (workflow_id, n, org_id, connection, events, filter, environment)
select w.id, c.n, w.org_id, c.value ->> 'connection',
       array(select json_array_elements_text(c.value -> 'events')), c.value -> 'filter', c.value ->> 'environment'
from workflows w
join workflow_versions v on v.workflow_id = w.id and v.version = w.version
cross join lateral json_array_elements(v.descriptor -> 'connections') with ordinality as c (value, n);

-- What came in. Row and payload are kept together.
create table deliveries (
  id             id primary key,
  org_id         id not null,
  -- A webhook or a connection. No foreign key: deliveries outlive them.
  source_id      id not null,
  source_name    text not null,
  received_at    timestamptz not null default now(),
  outcome        text collate "C" not null,
  reason         text,
  event          text,
  replay_of      id,
  attempts       int not null default 1,
  method         text not null,
  query          text not null,
  -- JSON, without credentials.
  headers        text not null,
  content_type   text,
  -- As they came; large ones lie in the object store under their digest.
  payload        bytea,
  payload_key    text,
  payload_bytes  int not null,
  is_cut         boolean not null default false,
  check ((payload is null) <> (payload_key is null))
);
create index deliveries_by_org on deliveries (org_id, id);
create index deliveries_by_outcome on deliveries (org_id, outcome, id);
create index deliveries_by_source on deliveries (org_id, source_id, id);
-- Each source keeps the newest hundred of them, for a week.
create index deliveries_unverified on deliveries (source_id, id) where outcome = 'unverified';

-- What became of a delivery for each workflow that it could have started.
create table delivery_matches (
  org_id       id not null,
  workflow_id  id not null,
  delivery_id  id not null,
  outcome      text collate "C" not null,
  reason       text,
  run_id       id,
  primary key (delivery_id, workflow_id)
);
create index delivery_matches_by_workflow on delivery_matches (org_id, workflow_id, delivery_id);

-- By which a repetition is known of a delivery that has started a run.
create table delivery_keys (
  org_id       id not null,
  workflow_id  id not null,
  -- SHA-256 of the source and what the provider calls the delivery.
  key          bytea not null,
  run_id       id not null,
  expires_at   timestamptz not null,
  primary key (org_id, workflow_id, key)
);
create index delivery_keys_by_expiry on delivery_keys (expires_at);
