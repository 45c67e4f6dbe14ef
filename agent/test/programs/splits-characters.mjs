import { writeSync } from 'node:fs'

const TEXT = Buffer.from('grün 日本 🌊')

export async function run() {
  // Byte by byte, both past JavaScript's streams and through them.
  for (const byte of TEXT) {
    writeSync(1, Buffer.of(byte))
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
  writeSync(1, '\n')
  for (const byte of TEXT) process.stderr.write(Buffer.of(byte))
  process.stderr.write('\n')
  console.log('a'.repeat(150_000))
}
