/** What is said of a field of an input by its name alone. What its schema says goes before it. */
export interface FieldTexts {
  /** In documents, where the example of its row does not say it either. */
  readonly meaning?: string
  /** In the help, behind its flag. */
  readonly flag?: string
  /** What could be typed, in the examples of the help. */
  readonly sample?: string
}

export const FIELDS: Readonly<Record<string, FieldTexts>> = {
  org: { meaning: 'Slug of the org.' },
  workflow: { sample: 'hello' },
  version: { sample: '3' },
  run: { meaning: 'Id of a run.', flag: 'only those of this run', sample: 'run_…' },
  job: { meaning: 'Id of a job.', sample: 'job_…' },
  schedule: { meaning: 'Id of the schedule.', sample: 'sch_…' },
  input: { meaning: 'Id of the question.', sample: 'inp_…' },
  pool: { meaning: 'Name or id of the pool.', flag: 'only those of this pool', sample: 'default' },
  runner: { meaning: 'Id of the runner.', sample: 'rnr_…' },
  connection: { meaning: 'Id of the connection.', sample: 'conn_…' },
  delivery: { meaning: 'Id of the delivery.', sample: 'dlv_…' },
  token: { meaning: 'Id of the registration token; not the token itself.', sample: 'rtok_…' },
  key: { meaning: 'Id of the key; not the key itself.', sample: 'key_…' },
  environment: { flag: 'only those of this environment', sample: 'staging' },
  name: { sample: 'REGION' },
  status: { flag: 'only those of this status' },
  trigger: { flag: 'only those that were started so' },
  tag: { flag: 'only those with this tag' },
  blocked: { flag: 'only those that wait for somebody to decide' },
  createdAfter: { flag: 'after; milliseconds since the Unix epoch' },
  createdBefore: { flag: 'before; milliseconds since the Unix epoch' },
  reason: { flag: 'why, for those who read the log' },
  reusable: { flag: 'it serves more than once' },
}
