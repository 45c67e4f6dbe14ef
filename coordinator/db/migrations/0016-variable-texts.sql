-- breaking
-- A change of what the org sets was written once for each environment: up to 200 times 512 KiB. A set is now two texts:
-- that of the org, and what the environment sets itself. Coordinators of before would not find what runs are given.
create table variable_texts (
  id       bigint generated always as identity primary key,
  org_id   id not null references orgs,
  digest   bytea not null,
  bytes    int not null,
  -- Names and values. Null: the environment has a secret of this name, which hides a variable of the org.
  content  json not null,
  -- When a set or a head was last given it.
  used_at  timestamptz not null default now(),
  unique (org_id, digest)
);

alter table variable_sets
  add column base_id bigint references variable_texts,
  add column own_id bigint references variable_texts;
alter table variable_heads add column text_id bigint references variable_texts;

-- Old sets are kept as they are: all of it counts as set by the environment.
create temporary table old_texts as
select s.id as set_id, s.org_id, sha256(convert_to(s.variables::text, 'UTF8')) as digest, s.variables as content
from variable_sets s;
create temporary table level_texts as
select h.org_id, h.environment, sha256(convert_to(t.content, 'UTF8')) as digest, t.content::json as content
from variable_heads h
cross join lateral (
  select coalesce(json_object_agg(v.name, v.value order by v.name)::text, '{}') as content
  from variables v
  where v.org_id = h.org_id and v.environment = h.environment and (h.environment <> '' or v.value is not null)
) t;
insert into variable_texts (org_id, digest, bytes, content)
select distinct on (org_id, digest) org_id, digest, octet_length(content::text), content
from (
  select org_id, digest, content from old_texts
  union all
  select org_id, digest, content from level_texts
  union all
  select org_id, sha256('{}'), '{}'::json from variable_sets
) t;
update variable_sets s
set base_id = empty.id, own_id = t.id
from old_texts o
join variable_texts t on t.org_id = o.org_id and t.digest = o.digest
join variable_texts empty on empty.org_id = o.org_id and empty.digest = sha256('{}')
where s.id = o.set_id;
update variable_heads h
set text_id = t.id
from level_texts l
join variable_texts t on t.org_id = l.org_id and t.digest = l.digest
where h.org_id = l.org_id and h.environment = l.environment;
drop table old_texts, level_texts;

-- Those that were alike are one from now on; runs keep the one that they have.
alter table variable_sets drop column variables, alter column base_id set not null, alter column own_id set not null;
alter table variable_heads alter column text_id set not null;
drop index variable_sets_current;
create index variable_sets_of_org on variable_sets (org_id, retired_at);
create index variable_sets_by_texts on variable_sets (base_id, own_id);
create index variable_sets_by_own on variable_sets (own_id);
create index variable_heads_by_text on variable_heads (text_id);

-- What heads give out from now on: the org's text and the environment's own.
with wanted as (
  select h.org_id, h.environment,
         coalesce(base.text_id, empty.id) as base_id,
         case when h.environment = '' then empty.id else h.text_id end as own_id
  from variable_heads h
  join variable_texts empty on empty.org_id = h.org_id and empty.digest = sha256('{}')
  left join variable_heads base on base.org_id = h.org_id and base.environment = ''
),
created as (
  insert into variable_sets (org_id, base_id, own_id)
  select distinct org_id, base_id, own_id from wanted
  returning id, org_id, base_id, own_id
)
update variable_heads h
set set_id = c.id
from wanted w
join created c on c.org_id = w.org_id and c.base_id = w.base_id and c.own_id = w.own_id
where h.org_id = w.org_id and h.environment = w.environment;
update variable_sets s
set retired_at = now()
where s.retired_at is null and not exists (select from variable_heads h where h.set_id = s.id);
