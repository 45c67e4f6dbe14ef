import { importJWK, type CryptoKey, type JWK } from 'jose'
import { identityFile, makeKeys, publicHalf, type Identity, type PublicKey } from './identity.ts'
import { writePrivately } from './write-privately.ts'

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
  /** The one before the present key is 0; after the oldest comes that one again. Undefined: there is none. */
  former(nth: number): Promise<FormerKey | undefined>
}

/** The coordinator takes it only where its database was set back to the time of this key. */
export interface FormerKey {
  key: CryptoKey | Uint8Array
  /** The coordinator took it: it becomes the present key, and is renewed at the next look, which writes the file. */
  serves(this: void): void
}

/**
 * Backups that people restore are of the last night, seldom of some weeks ago; 30 days are the longest that they
 * usually keep them. At one key in 18 hours these are 40 keys.
 */
const FORMER_LIFE_MS = 30 * 86_400_000
/** Where keys live for less than that; the last of so many is tried after about an hour. */
const MOST_FORMER = 60

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
      const { nextKey: _, ...rest } = replaced(saved, nextKey)
      await keep({ ...rest, keyAt: Date.now() })
      current = key
    },
    async former(nth) {
      const all = saved.formerKeys ?? []
      const one = all[nth % all.length]
      if (!one) return undefined
      const key = await importJWK(one.key, 'EdDSA')
      return {
        key,
        serves() {
          // A copy that somebody made of it serves again too: it is renewed as soon as may be, like one of unknown age.
          saved = { ...replaced(saved, one.key), keyAt: 0 }
          current = key
        },
      }
    },
  }
}

function replaced({ privateKey, formerKeys = [], ...rest }: Identity, key: JWK): Identity {
  const now = Date.now()
  const all = [{ key: privateKey, until: now }, ...formerKeys]
  const former = all.filter((each) => each.key.x !== key.x && now - each.until < FORMER_LIFE_MS)
  return { ...rest, privateKey: key, formerKeys: former.slice(0, MOST_FORMER) }
}
