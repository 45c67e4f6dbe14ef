import { z } from 'zod'

/** The file under `/downloads/` that says which packages for npm a coordinator has. */
export const SDK_PACKAGES_FILE = 'packages.json'

/**
 * `windlass-0.1.0-0123456789abcdef.tgz`: with the start of its SHA-256. A lockfile notes address and checksum, so other
 * bytes have another address.
 */
export const SDK_PACKAGE_FILE = /^(?<name>windlass(?:-cli)?)-(?<version>\d+\.\d+\.\d+)-[0-9a-f]{16}\.tgz$/

const File = z.string().regex(SDK_PACKAGE_FILE)
/** `windlass` is what programs import, `windlass-cli` the command. */
export const SdkPackages = z.object({
  version: z.string(),
  files: z.object({ windlass: File, 'windlass-cli': File }),
})
export type SdkPackages = z.output<typeof SdkPackages>
