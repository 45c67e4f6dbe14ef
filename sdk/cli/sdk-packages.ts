import { SDK_PACKAGES_FILE, SdkPackages } from '@windlass/shared/model/sdk-packages.ts'
import { Failure } from './failure.ts'
import { during } from './progress.ts'
import type { Session } from './session.ts'

/** What a project depends on: the address of each package, by its name. */
export interface SdkDependencies {
  /** Of the service. */
  version: string
  addresses: Record<keyof SdkPackages['files'], string>
}

// The service makes them when they are first asked for, which takes it some seconds.
const DEADLINE_MS = 60_000

/** The packages that the service has now, under the address by which it is known here. */
export async function sdkDependencies(session: Session): Promise<SdkDependencies> {
  const { client, settings, progress } = session
  const asked = client.service.download({ file: SDK_PACKAGES_FILE }, { deadlineMs: DEADLINE_MS })
  const response = await during(progress, `asking ${settings.url} for its packages`, asked)
  const parsed = SdkPackages.safeParse(await response.json().catch(() => undefined))
  if (!parsed.success) {
    const next = 'look whether a proxy answers in its place: curl the same address'
    throw new Failure(`${response.url} does not say which packages there are.`, next)
  }
  const { version, files } = parsed.data
  const base = `${settings.url.replace(/\/+$/, '')}/downloads`
  return {
    version,
    addresses: { windlass: `${base}/${files.windlass}`, 'windlass-cli': `${base}/${files['windlass-cli']}` },
  }
}
