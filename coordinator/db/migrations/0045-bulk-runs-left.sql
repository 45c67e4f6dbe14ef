-- What is left to do of a job. By the key, whoever asks for the next piece passes over all that have failed before.
create index bulk_job_runs_left on bulk_job_runs (job_id, run_id) where error is null;
