import type http from 'node:http'
import { importJWK, jwtVerify } from 'jose'
import type { JWK } from 'jose'
import { answer, readJson } from './http.ts'

interface Known {
  present: JWK
  former: JWK | undefined
}

/** The agents that have registered with the fake, and the clock by which it judges their tokens. */
export class FakeRunners {
  /** How far its clock is ahead of that of this machine. */
  aheadMs = 0
  unauthenticated = 0
  /** Each key that an agent has put in the place of the one before. */
  readonly renewed: string[] = []
  /** Answers a request for that; `take` does what it asks for. */
  onRenew: ((response: http.ServerResponse, take: () => void) => void) | undefined
  #known = new Map<string, Known>()

  add(runner: string, publicKey: JWK): void {
    this.#known.set(runner, { present: publicKey, former: undefined })
  }

  /** As if its database had been set back to when this was the key of an agent. */
  setBack(x: string): void {
    for (const runner of this.#known.keys())
      this.#known.set(runner, { present: { kty: 'OKP', crv: 'Ed25519', x }, former: undefined })
  }

  now(): number {
    return Date.now() + this.aheadMs
  }

  /** As a header says it. */
  date(): string {
    return new Date(this.now()).toUTCString()
  }

  async renewKey(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const { publicKey } = await readJson(request)
    const [[runner, { present }]] = [...this.#known] as [[string, Known]]
    const take = () => {
      if (present.x === publicKey.x) return
      this.#known.set(runner, { present: publicKey, former: present })
      this.renewed.push(publicKey.x)
    }
    if (this.onRenew) return this.onRenew(response, take)
    take()
    answer(response, 200, { runner, renewAfterMs: 1 })
  }

  /** The key before serves until the present one was used. */
  async isRunner(request: http.IncomingMessage): Promise<boolean> {
    const token = request.headers.authorization?.replace('Bearer ', '') ?? ''
    for (const known of this.#known.values()) {
      if (await this.#isSigned(token, known.present)) {
        known.former = undefined
        return true
      }
      if (known.former && (await this.#isSigned(token, known.former))) return true
    }
    this.unauthenticated += 1
    return false
  }

  async #isSigned(token: string, publicKey: JWK): Promise<boolean> {
    try {
      const { payload, protectedHeader } = await jwtVerify(token, await importJWK(publicKey, 'EdDSA'), {
        audience: 'windlass-agent',
        maxTokenAge: '60s',
        clockTolerance: 5,
        currentDate: new Date(this.now()),
      })
      return payload.sub === protectedHeader.kid && payload.jti !== undefined
    } catch {
      // Whatever is wrong with a token, its bearer is nobody.
      return false
    }
  }
}
