import { Settings as AgentSettings } from '@windlass/agent/settings.ts'
import { Settings as CoordinatorSettings } from '@windlass/coordinator/settings.ts'
import { code, headed, table } from './markdown.ts'

const ABOUT = `Environment variables. Lengths of time are in milliseconds, sizes in bytes, lists have commas. An unknown \`WINDLASS_*\` name stops
the start. \`npm start\` hands all of them on to the coordinator and the agent that it starts.`

export function settingsReference(): string {
  return headed(
    'Settings',
    ABOUT,
    `## Coordinator\n\n${settings(CoordinatorSettings)}`,
    `## Agent\n\n${settings(AgentSettings)}`,
  )
}

interface Layer {
  readonly meta?: () => { description?: string; otherwise?: string } | undefined
  readonly def: {
    readonly type: string
    readonly innerType?: Layer
    readonly defaultValue?: unknown
    readonly entries?: Record<string, string>
  }
}

function settings({ shape }: { shape: object }): string {
  const rows = Object.entries(shape).map(([name, setting]) => {
    const { description = '', otherwise, kind } = readingOf(setting as Layer)
    return [code(name), kind, otherwise, description]
  })
  return table(['name', 'type', 'default', 'what it does'], rows)
}

/** From the outside in: what comes first speaks. */
function readingOf(setting: Layer): { description?: string; otherwise: string; kind: string } {
  const layers: Layer[] = []
  for (let layer: Layer | undefined = setting; layer; layer = layer.def.innerType) layers.push(layer)
  const metas = layers.map((layer) => layer.meta?.())
  const inner = layers.at(-1)!.def
  return {
    description: metas.find((meta) => meta?.description)?.description,
    // A default that is worked out on the machine says in words what it is.
    otherwise: metas.find((meta) => meta?.otherwise)?.otherwise ?? defaultOf(layers),
    kind: inner.entries ? Object.values(inner.entries).join(', ') : (KINDS[inner.type] ?? inner.type),
  }
}

const KINDS: Readonly<Record<string, string>> = { string: 'text', int: 'number', array: 'list', boolean: 'true, false' }

function defaultOf(layers: readonly Layer[]): string {
  const last = layers.at(-1)!.def.type
  const found = layers.find(({ def }) => def.type === 'default')
  if (!found) return layers.some(({ def }) => def.type === 'optional') ? '–' : last === 'optional' ? '–' : 'required'
  const value = found.def.defaultValue
  return Array.isArray(value) && value.length === 0 ? '–' : code(String(value))
}
