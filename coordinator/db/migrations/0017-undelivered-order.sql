-- What is there and has not been given to its program, in the order in which it came: of a run with very many results
-- the first ones are found without reading the others.
create index journal_pending on journal (run_id, attempt, completion)
  where completion is not null and delivered is null;
drop index journal_undelivered;
