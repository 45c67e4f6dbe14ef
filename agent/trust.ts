import { readFileSync } from 'node:fs'
import tls from 'node:tls'
import { AgentRefusal, EXIT } from './exit-codes.ts'

const CERTIFICATE = /-----BEGIN CERTIFICATE-----/

/**
 * Trusts the authorities in a file besides those of Node, in every connection of this process. It is the only setting of trust
 * that there is: none turns the verification off.
 */
export function trustCaFile(file: string | undefined): void {
  if (file === undefined) return
  const pem = readPem(file)
  // Node 22.19 and later; `setDefaultCACertificates` serves fetch, ws and all else at once.
  if (typeof tls.setDefaultCACertificates !== 'function')
    throw refused(
      file,
      'this Node is older than 22.19',
      'upgrade Node, or start it with NODE_EXTRA_CA_CERTS=<the file>',
    )
  try {
    tls.setDefaultCACertificates([...tls.getCACertificates('default'), pem])
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw refused(file, why, 'it has to hold certificates in PEM form')
  }
}

function readPem(file: string): string {
  try {
    const pem = readFileSync(file, 'utf8')
    if (CERTIFICATE.test(pem)) return pem
  } catch (error) {
    throw refused(file, error instanceof Error ? error.message : String(error), 'name a file that the agent may read')
  }
  throw refused(
    file,
    'it holds no certificate',
    'it has to hold certificates in PEM form (-----BEGIN CERTIFICATE-----)',
  )
}

function refused(file: string, why: string, wayOut: string): AgentRefusal {
  return new AgentRefusal(EXIT.config, `WINDLASS_AGENT_CA_FILE: ${file} cannot be used: ${why}. ${wayOut}.`)
}
