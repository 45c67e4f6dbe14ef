/** Random characters of a secret, and the digits of the checksum behind them. */
const SECRET_LENGTH = 40
const CHECKSUM_LENGTH = 6
const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** Secrets that people carry: API keys, sessions of operators, and tokens by which an agent joins a pool. */
export type SecretPrefix = 'wl_' | 'wls_' | 'wlr_'

/** What a list may show of a key. */
export const SHOWN_LENGTH = 10

/** A new secret: the prefix, 40 random base62 characters (238 bits), and a CRC-32 over both in 6 base62 digits. */
export function mintSecret(prefix: SecretPrefix): string {
  const body = prefix + randomDigits(SECRET_LENGTH)
  return body + checksum(body)
}

/** True when the text has the form and its checksum fits: typing errors and scanners need no database. */
export function isWellFormed(prefix: SecretPrefix, text: string): boolean {
  if (text.length !== prefix.length + SECRET_LENGTH + CHECKSUM_LENGTH || !text.startsWith(prefix)) return false
  const body = text.slice(0, -CHECKSUM_LENGTH)
  return isBase62(body.slice(prefix.length)) && text.endsWith(checksum(body))
}

function isBase62(text: string): boolean {
  return /^[0-9A-Za-z]+$/.test(text)
}

function randomDigits(length: number): string {
  let text = ''
  while (text.length < length) {
    for (const byte of crypto.getRandomValues(new Uint8Array(length))) {
      // 248 is the last multiple of 62 that a byte holds: beyond it the first digits would come more often.
      if (byte < 248 && text.length < length) text += DIGITS[byte % 62]
    }
  }
  return text
}

function checksum(text: string): string {
  let rest = crc32(text)
  let digits = ''
  for (let position = 0; position < CHECKSUM_LENGTH; position++) {
    digits = DIGITS[rest % 62] + digits
    rest = Math.floor(rest / 62)
  }
  return digits
}

const CRC_TABLE = Uint32Array.from({ length: 256 }, (_, index) => {
  let value = index
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1
  return value
})

/** CRC-32 as in zip and PNG. The text is ASCII, so a character is a byte. */
function crc32(text: string): number {
  let crc = 0xffffffff
  for (let index = 0; index < text.length; index++) {
    crc = (crc >>> 8) ^ CRC_TABLE[(crc ^ text.charCodeAt(index)) & 0xff]!
  }
  return (crc ^ 0xffffffff) >>> 0
}
