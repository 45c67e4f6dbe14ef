import { filled } from './layout.ts'
import { Transcript } from './transcript.ts'

interface Ask {
  /** JSON, but a text as it is. */
  body?: unknown
  /** Credential in place of the org's key; null: none. */
  as?: string | null
  headers?: Record<string, string>
}

// oxlint-disable-next-line typescript/no-explicit-any -- an act takes from an answer what the next one needs
export type Answer = any

/** Headers of the protocol or of the moment, which say nothing of ours. */
const NOT_OURS = new Set(['connection', 'content-length', 'date', 'keep-alive', 'transfer-encoding'])
/** Headers with what is left of a limit, and with the tag of a cached answer. */
const MEASURED: Readonly<Record<string, [RegExp, string]>> = {
  ratelimit: [/\b([rt])=\d+/g, '$1=<n>'],
  etag: [/"[^"]+"/, '"<etag>"'],
}

/** Requests as `curl` would send them, and the whole answers. */
export class RestTranscript extends Transcript {
  async act(name: string, request: string, ask: Ask = {}): Promise<Answer> {
    const response = await this.#send(request, ask)
    const text = await response.text()
    const isJson = response.headers.get('content-type')?.startsWith('application/json') && text !== ''
    const value: unknown = isJson ? JSON.parse(text) : text
    this.add(
      name,
      ...this.#asked(request, ask),
      ...this.#head(response),
      isJson ? this.json(value) : this.names.text(text),
    )
    return value
  }

  /** The same for an answer of which only a part is to be written down. */
  async actIn(name: string, request: string, part: (value: Answer) => string): Promise<void> {
    const response = await this.#send(request, {})
    this.add(name, `> ${request}`, ...this.#head(response), this.names.text(part(await response.json())))
  }

  #send(request: string, { body, as = this.org.apiKey, headers }: Ask): Promise<Response> {
    const [method, path] = request.split(' ') as [string, string]
    return fetch(this.org.url + path, {
      method,
      headers: {
        ...(as !== null && { authorization: `Bearer ${as}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
  }

  #asked(request: string, { body, as, headers = {} }: Ask): string[] {
    const caller = as === undefined ? [] : [`> authorization: ${as === null ? 'none' : this.names.text(as)}`]
    const sent = Object.entries(headers).map(([name, value]) => `> ${name}: ${value}`)
    return [
      `> ${this.names.text(request)}`,
      ...caller,
      ...sent,
      ...(body === undefined ? [] : [`> ${this.asked(body)}`]),
    ]
  }

  #head(response: Response): string[] {
    const ours = [...response.headers].filter(([name]) => !NOT_OURS.has(name))
    const stable = ours.map(([name, value]) => {
      const [figure, stands] = MEASURED[name] ?? [/$^/, '']
      return [name, this.names.text(value.replace(figure, stands))]
    })
    return [`< ${response.status}`, filled(Object.fromEntries(stable), '< ')]
  }
}
