import { importJWK, type CryptoKey, type JWK } from 'jose'
import { identityFile, makeKeys, type Identity } from './identity.ts'
import { writePrivately } from './write-privately.ts'

type PublicKey = Awaited<ReturnType<typeof makeKeys>>['publicKey']

/** The key with which this agent signs, and its successor. */
export interface Keys {
  current(): CryptoKey | Uint8Array
  /** By the clock of this machine. */
  ageMs(): number
  /** A successor was made and may be known to the coordinator. */
  isPending(): boolean
  /**
   * Changes to a new key, which `ask` has the coordinator take. The key is on disk before it is asked for, and it is in use only after it is
   * the one on disk: killed at any point, the next start has one that serves.
   */
  change(ask: (publicKey: PublicKey) => Promise<unknown>): Promise<void>
}

export async function openKeys(home: string, identity: Identity): Promise<Keys> {
  const file = identityFile(home)
  let saved = identity
  let current = await importJWK(identity.privateKey, 'EdDSA')
  const keep = async (news: Identity) => {
    await writePrivately(file, JSON.stringify(news))
    saved = news
  }
  return {
    current: () => current,
    ageMs: () => Math.abs(Date.now() - (saved.keyAt ?? 0)),
    isPending: () => saved.nextKey !== undefined,
    async change(ask) {
      const nextKey = saved.nextKey ?? (await makeKeys()).privateKey
      if (!saved.nextKey) await keep({ ...saved, nextKey })
      await ask(publicHalf(nextKey))
      const key = await importJWK(nextKey, 'EdDSA')
      const { nextKey: _, ...rest } = saved
      await keep({ ...rest, privateKey: nextKey, keyAt: Date.now() })
      current = key
    },
  }
}

function publicHalf({ x }: JWK): PublicKey {
  return { kty: 'OKP', crv: 'Ed25519', x: x! }
}
