-- What an agent is told before its calls are acknowledged: calls and questions that were refused or had no answer, and
-- that their programs have not been given. Few of a run, among what may be tens of thousands of results.
create index journal_refusals on journal (run_id, attempt, completion)
  where completion is not null and delivered is null and state = 'failed' and child_run_id is null;
