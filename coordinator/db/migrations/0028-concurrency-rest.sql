-- Groups whose lines have moved, and perhaps not as far as there is room: a job lets in what one transaction left.
create table concurrency_rest (
  org_id     id not null,
  group_key  text collate "C" not null,
  primary key (org_id, group_key)
);
