-- Runners of an org that have not been deregistered are counted, beside many more that came and went. Not a partial
-- index: claims look for runners that have not been deregistered either, and would read all of it.
create index runners_of_org on runners (org_id, (deregistered_at is null));
