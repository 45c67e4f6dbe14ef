import { hash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { Fault } from '@windlass/shared/errors.ts'
import { BytesAnswer } from './call.ts'

const OWN = join(import.meta.dirname, 'docs-page')
const SWAGGER = dirname(createRequire(import.meta.url).resolve('swagger-ui-dist/package.json'))

const SCRIPT = 'text/javascript; charset=utf-8'

/** All that the page loads. Nothing else of the package is served: it brings 12 MB along. */
const FILES: Readonly<Record<string, readonly [folder: string, contentType: string]>> = {
  'swagger-ui.css': [SWAGGER, 'text/css; charset=utf-8'],
  'swagger-ui-bundle.js': [SWAGGER, SCRIPT],
  'start.js': [OWN, SCRIPT],
}

/**
 * Nothing from elsewhere, nothing inline, and nobody may frame a page into which keys are pasted. Icons stand in `data:` addresses in
 * the style sheet.
 */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

const PAGE_HEADERS = { 'content-security-policy': POLICY, 'referrer-policy': 'no-referrer' }

/** The page at /v1/docs. */
export function docsPage(): Promise<BytesAnswer> {
  return readOnce('index.html', () => read(join(OWN, 'index.html'), 'text/html; charset=utf-8', PAGE_HEADERS))
}

/** A file that the page loads. */
export function docsFile(name: string): Promise<BytesAnswer> {
  const found = Object.hasOwn(FILES, name) ? FILES[name] : undefined
  if (!found) throw new Fault('NOT_FOUND', { file: name })
  const [folder, contentType] = found
  return readOnce(name, () => read(join(folder, name), contentType))
}

const readings = new Map<string, Promise<BytesAnswer>>()

/** Read when it is first asked for; a reading that failed is tried again. */
function readOnce(name: string, make: () => Promise<BytesAnswer>): Promise<BytesAnswer> {
  const known = readings.get(name)
  if (known) return known
  const making = make()
  readings.set(name, making)
  making.catch(() => readings.delete(name))
  return making
}

async function read(path: string, contentType: string, headers: Record<string, string> = {}): Promise<BytesAnswer> {
  const bytes = await readFile(path)
  return new BytesAnswer(bytes, contentType, { etag: `"${hash('sha1', bytes, 'base64url')}"`, headers })
}
