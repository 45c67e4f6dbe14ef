import { execFile } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { createServer, request } from 'node:http'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'

export interface Check {
  id: string
  status: 'SUCCESS' | 'FAILURE' | 'WARNING' | 'SKIPPED' | 'INFO'
  errorMessage?: string
}

/** What MCP's own suite finds, by scenario. */
export type Found = ReadonlyMap<string, readonly Check[]>

const PACKAGE = '@modelcontextprotocol/conformance/dist/index.js'
const DEADLINE_MS = 180_000

/** Runs all scenarios of a revision of the protocol against a server. WINDLASS_TEST_CONFORMANCE names another copy of the suite. */
export async function runSuite(url: string, revision: string): Promise<Found> {
  const suite = process.env.WINDLASS_TEST_CONFORMANCE ?? createRequire(import.meta.url).resolve(PACKAGE)
  const folder = mkdtempSync(join(tmpdir(), 'windlass-conformance-'))
  try {
    const args = ['server', '--url', url, '--suite', 'all', '--spec-version', revision, '--output-dir', folder]
    const said = await runNode([suite, ...args], folder)
    const found = new Map(readdirSync(folder).map((name) => [scenarioOf(name), checksIn(join(folder, name))]))
    if (found.size === 0) throw new Error(`the suite has no scenario of ${revision}; is it older than that?\n${said}`)
    return found
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Its exit code only says that something failed, and what did is for the test to judge. */
function runNode(args: readonly string[], cwd: string): Promise<string> {
  return new Promise((resolve) => {
    const options = { cwd, timeout: DEADLINE_MS, maxBuffer: 64 * 1024 * 1024, encoding: 'utf8' } as const
    execFile(process.execPath, args, options, (_error, stdout, stderr) => resolve(`${stdout}\n${stderr}`.slice(-3000)))
  })
}

/** `server-tools-list-2026-11-21T15-18-37-492Z` → `tools-list` */
function scenarioOf(folder: string): string {
  return folder.replace(/^server-/, '').replace(/-\d{4}-\d\d-\d\dT[\dA-Z-]+$/, '')
}

function checksIn(folder: string): Check[] {
  return JSON.parse(readFileSync(join(folder, 'checks.json'), 'utf8')) as Check[]
}

/** The suite sends no credential, so somebody in between adds one. What else it says, the Host too, passes as it is. */
export async function withCredential(url: string, apiKey: string): Promise<{ url: string; close(): void }> {
  const proxy = createServer((incoming, response) => {
    const headers = { ...incoming.headers, authorization: `Bearer ${apiKey}` }
    const outgoing = request(`${url}${incoming.url ?? ''}`, { method: incoming.method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(response)
    })
    outgoing.on('error', () => response.destroy())
    incoming.pipe(outgoing)
  })
  proxy.listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  const { port } = proxy.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    close() {
      proxy.close()
      proxy.closeAllConnections()
    },
  }
}
