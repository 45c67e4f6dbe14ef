import type { ExamplesOf } from '../example.ts'
import { IDS } from '../example-things.ts'

const RECEIPT = {
  delivery: { id: IDS.delivery, outcome: 'triggered' as const, reason: null },
  runs: [{ id: IDS.run, workflow: 'approval', status: 'queued' as const }],
}

const PROBE = 'Answers `WebHook-Allowed-Origin` as it was asked for, and `WebHook-Allowed-Rate: *`.'

const ANSWERS =
  'A delivery that is verified is answered 200, whatever becomes of it: `outcome` says it. One that ' +
  'is not is answered 401 and recorded. The same delivery again starts nothing and is answered with ' +
  'the first run. Bodies may have 25 MiB and come in chunks; a `Content-Encoding` is refused.'

export const hooks: ExamplesOf<'hooks'> = {
  receive: { about: ANSWERS, input: { hook: IDS.hook }, output: RECEIPT, fields: { hook: 'Id of the webhook.' } },
  probe: {
    about: PROBE,
    input: { hook: IDS.hook },
    output: '',
    fields: { hook: 'Id of the webhook.' },
    headers: { 'WebHook-Request-Origin': 'Who wants to deliver.' },
    bytes: { types: ['text/plain'], hasEtag: false },
  },
  receiveInbound: { about: ANSWERS, input: { connection: IDS.connection }, output: RECEIPT },
  probeInbound: {
    about: PROBE,
    input: { connection: IDS.connection },
    output: '',
    headers: { 'WebHook-Request-Origin': 'Who wants to deliver.' },
    bytes: { types: ['text/plain'], hasEtag: false },
  },
}
