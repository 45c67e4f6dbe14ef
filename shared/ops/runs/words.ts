import type { ExamplesOf } from '../example.ts'
import { KEY_HEADER } from '../idempotency-key.ts'
import { BULK_CANCEL } from '../jobs/words.ts'
import {
  CANCELLED,
  COMPLETED,
  DAY_MS,
  FAILED,
  IDS,
  INVOICE,
  NINE,
  QUEUED,
  RECEIPT,
  WAITING,
} from '../example-things.ts'

const PAGING = 'Pages are joined by `nextCursor`: send it as `cursor`, with the same filters, until it is null.'

const WAITS =
  'It waits for an answer until 2026-11-22 09:00:00 UTC; then it goes on with the answer that its program ' +
  'has set for that. It asks: May Ada be paid 125.00 €?'

export const runs: ExamplesOf<'runs'> = {
  trigger: {
    about:
      'Answers at once with the run as `queued`; follow it with `runs.get`, `runs.events` or ' +
      '`runs.stream`. The input is checked against the schema of the workflow first, so a misfit makes no ' +
      'run. Each call makes a run, unless an idempotency key says that it is the same call: then the ' +
      'first run is answered with 200, and a different request under that key is refused with ' +
      '`IDEMPOTENCY_CONFLICT`. Where the workflow debounces and a run waits for further calls, this call ' +
      'is merged into it: answered with 200, that run and `merged`.',
    input: {
      org: 'acme',
      workflow: 'approval',
      input: INVOICE,
      environment: 'production',
      tags: ['invoices'],
      idempotencyKey: 'invoice-2026-117',
    },
    output: { run: QUEUED },
    fields: { tags: 'Words to find the run by; 20 at most, of 64 characters each.' },
    headers: KEY_HEADER,
  },
  batch: {
    about: [
      'Takes what `runs.trigger` takes, up to 1,000 times, and answers what became of each, in the same order: `run`,',
      'with `merged` where it was merged into a run that waits for further calls, or `error`. An item that is refused',
      'leaves the others alone; a body that is malformed anywhere is refused as a whole. An idempotency key counts for',
      'its item, and is the same as that of a single call. The request counts once for the limits of requests.',
    ].join(' '),
    input: {
      org: 'acme',
      workflow: 'approval',
      items: [{ input: INVOICE, idempotencyKey: 'invoice-2026-118' }, { input: { amount: 'much' } }],
    },
    output: {
      results: [
        { run: QUEUED },
        {
          error: {
            code: 'VALIDATION_FAILED',
            message: 'The input does not fit what `run` declares. input.amount: must be a number',
            detail: { path: 'input.amount' },
          },
        },
      ],
    },
    fields: { items: '1 to 1,000 runs.' },
  },
  list: {
    about: `Filters are joined by "and"; several statuses by "or". ${PAGING}`,
    input: { org: 'acme', status: ['failed', 'completed'], workflow: 'approval', limit: 20 },
    output: { runs: [COMPLETED, FAILED], nextCursor: null },
    fields: {
      status: 'Comma-separated; any of these.',
      environment: 'Name of an environment.',
      trigger: 'What started it.',
      tag: 'Runs that carry this tag.',
      blocked:
        'Runs that are blocked, or with `false` those that are not. A blocked run keeps the status in which it waited.',
      createdAfter: 'Milliseconds since the Unix epoch; later than this.',
      createdBefore: 'Milliseconds since the Unix epoch; earlier than this.',
    },
  },
  get: {
    about:
      'Cheap to ask often: with the `ETag` of the last answer as `If-None-Match` an unchanged run is 304. ' +
      '`completed`, `failed` and `cancelled` are final. What it returned is at `runs.output`, why it ' +
      'stands still at `runs.why`.',
    input: { run: IDS.run },
    output: { run: WAITING },
  },
  input: {
    about: 'As it was given, byte for byte of its JSON value; null when none was. It never changes.',
    input: { run: IDS.run },
    output: { input: INVOICE },
  },
  output: {
    about:
      'Refused with `RUN_NOT_FINISHED` while the run is under way. Null for a run that failed or was ' +
      'cancelled: `runs.get` has the error. What was returned and does not fit the output schema ' +
      '(`OUTPUT_INVALID`) is no output; it is answered with `refused`.',
    input: { run: IDS.run },
    output: { output: RECEIPT },
  },
  events: {
    about:
      'A page of the log in the order of cursors. Send the last cursor of a page as `since` for the next ' +
      'one, until `done` is true. An empty page with `done: false` means that nothing has happened since: ' +
      'ask again later, or follow `runs.stream`. The same cursor is always the same event.',
    input: { run: IDS.run, since: 2, channels: ['lifecycle', 'phase', 'output', 'log'], limit: 100 },
    output: {
      events: [
        { cursor: 3, at: NINE + 320, channel: 'lifecycle', type: 'run.running', data: { attempt: 1 } },
        { cursor: 4, at: NINE + 340, channel: 'phase', type: 'phase', data: { name: 'ask' } },
        { cursor: 5, at: NINE + 344, channel: 'log', type: 'log.stdout', data: { text: 'asking for 125.00 €' } },
      ],
      done: false,
    },
  },
  stream: {
    about:
      'First everything after `since`, then what happens, as it happens. `id` is the cursor, `event` the ' +
      'type, `data` the event as JSON. A line with a colon comes every 15 s so that proxies keep the line ' +
      'open. After `event: done` the stream ends. Whoever comes back sends the last id as `Last-Event-ID` ' +
      '(a browser does so by itself) and misses nothing, and sees nothing twice. When that event is not in the ' +
      'log any more, as after a restore of the database, the first event is `reset`, with a `message`, and the log ' +
      'follows from its first event on. A restored run gives the same cursors out once more: send ' +
      '`<cursor>.<at>` of the last event in place of its cursor, as our client does, and no other event is taken ' +
      'for it.',
    input: { run: IDS.run, since: 3, channels: ['lifecycle', 'phase'] },
    output:
      'event: phase\ndata: ' +
      `{"cursor":4,"at":${NINE + 340},"channel":"phase","type":"phase","data":{"name":"ask"}}\nid: 4\n\n`,
    headers: {
      'Last-Event-ID':
        'Goes on behind this cursor, or `<cursor>.<at>` of an event, in place of `since`; browsers send it when they ' +
        'reconnect.',
    },
  },
  cancel: {
    about:
      'A run without a process is `cancelled` at once; one that executes, or waits in a process that its ' +
      'agent has kept, is `cancelling` until its processes are gone, at the latest when the grace of its ' +
      'descriptor (10 s by default) is over. The runs that it has called are cancelled with it. Asked ' +
      'again it changes nothing and answers 200; a run that has completed or failed is refused with ' +
      '`RUN_ALREADY_FINISHED`.',
    input: { run: IDS.run, reason: 'Paid by hand.' },
    output: { run: CANCELLED },
    fields: { reason: 'Why; it stands in the log of the run.' },
  },
  retry: {
    about:
      'Makes a new run that names the old one in `retryOf`; the old one stays as it is, finished or not. ' +
      'It takes the current version unless one is named. Each call makes another run, unless an idempotency key ' +
      'says that it is the same call, as with `runs.trigger`; a key counts for the workflow.',
    input: { run: IDS.earlierRun, idempotencyKey: 'invoice-2026-117-again' },
    headers: KEY_HEADER,
    output: {
      run: {
        ...QUEUED,
        id: IDS.retriedRun,
        trigger: { kind: 'retry', id: IDS.earlierRun, actor: IDS.ciKey },
        retryOf: IDS.earlierRun,
        createdAt: NINE + 7_200_000,
        queuedAt: NINE + 7_200_000,
      },
    },
  },
  delete: {
    about: [
      'Not to be undone. `runs.get` shows what is left of it, with `deletedAt`; its input, output and events, and',
      'a retry of it, are refused with `RUN_DELETED`. Lists leave it out unless `deleted` asks for it. What',
      'points to it (children, retries, idempotency keys, the audit log) stays. It is refused while a run that',
      'was called below it is unfinished. Asked again it changes nothing.',
    ].join(' '),
    input: { run: IDS.run },
    output: {},
  },
  children: {
    about: `Those that it called itself with \`workflows.call()\`; what those called is theirs. ${PAGING}`,
    input: { run: IDS.run, status: ['completed'], limit: 20 },
    output: {
      runs: [
        {
          ...COMPLETED,
          id: IDS.childRun,
          workflow: { id: IDS.hello, slug: 'hello', version: 1 },
          trigger: { kind: 'child', id: IDS.run },
          parentRunId: IDS.run,
          rootRunId: IDS.run,
          createdAt: NINE + 1500,
          queuedAt: NINE + 1500,
        },
      ],
      nextCursor: null,
    },
    fields: { status: 'Comma-separated; any of these.' },
  },
  why: {
    about:
      'Sentences for people, with codes for programs: every cause says since when, until when if that is ' +
      'known, and who could change it. For a queued run every runner of its pool says why it does not ' +
      'take it.',
    input: { run: IDS.run },
    output: {
      why: {
        run: IDS.run,
        status: 'awaiting_input',
        since: NINE + 2100,
        summary: WAITS,
        process: { place: 'parked', runner: { id: IDS.runner, name: 'build-1' } },
        losses: [],
        causes: [
          {
            code: 'INPUT',
            message: WAITS,
            since: NINE + 2100,
            until: NINE + 2 * DAY_MS,
            change: `Anybody who may start runs: \`windlass inputs respond ${IDS.input} '<answer as JSON>'\`.`,
            inputId: IDS.input,
            at: 'index.ts:24',
          },
        ],
        runners: [],
      },
    },
  },
  restart: {
    about:
      'Only for a run whose `blocked` is set: a process that took it up did something else than its ' +
      'journal says. The program starts from the top as the next attempt, with what earlier attempts have ' +
      'finished, unless `retries.onCrash` of its descriptor is `fresh`. To leave it as it is and begin ' +
      'anew, use `runs.retry`.',
    input: { run: IDS.run },
    output: { run: { ...QUEUED, attempt: 2, queuedAt: NINE + 600_000 } },
  },
  bulkCancel: {
    about: [
      'Answers at once with a job; `jobs.get` tells how far it is. It takes the runs that were created before it.',
      'An empty filter is refused unless `all` says that all runs of the org are meant; so is a `status` in which',
      'nothing can be cancelled. A workflow or environment that does not exist is not found. What the runs have',
      'called is cancelled with them. While another job of the kind is under way in the org, it is refused with',
      '`CONFLICT`.',
    ].join(' '),
    input: { org: 'acme', filter: { status: ['queued'], workflow: 'approval' }, reason: 'Sent twice.' },
    output: { job: BULK_CANCEL },
    fields: { reason: 'Why; it stands in the logs of the runs.' },
  },
  bulkRetry: {
    about: [
      'Takes runs that had finished when the job found them and were created before it, each once, and makes a new',
      'run of each on the current version of its workflow, with `retryOf`. Runs that were called by others are left',
      'to these. What cannot be retried (a disabled or deleted workflow, an input that does not fit any more)',
      'counts as `failed`. The filter is that of `runs.bulkCancel`, and so is the rest. Under an idempotency key the',
      'same request is answered with the job that it made, as long as that is kept, and another one is refused with',
      '`IDEMPOTENCY_CONFLICT`.',
    ].join(' '),
    input: {
      org: 'acme',
      filter: { status: ['failed'], createdAfter: NINE - DAY_MS },
      idempotencyKey: 'after-outage-117',
    },
    headers: KEY_HEADER,
    output: {
      job: {
        ...BULK_CANCEL,
        kind: 'bulk-retry',
        filter: { status: ['failed'], createdAfter: NINE - DAY_MS },
      },
    },
  },
}
