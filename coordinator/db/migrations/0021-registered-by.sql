-- The registration token by which a runner came in, also after that token is gone: a registration whose answer was lost
-- is answered again to whoever shows the same token and the same key. Null for runners of before.
alter table runners add column registered_by id;
create index runners_by_registration on runners (registered_by, (public_key->>'x'));
