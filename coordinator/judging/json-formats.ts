/** Formats that a schema may name, each with the JSON type it speaks of. Others are comments to us. */
export const JSON_FORMATS = {
  'date-time': 'string',
  date: 'string',
  time: 'string',
  duration: 'string',
  email: 'string',
  hostname: 'string',
  ipv4: 'string',
  ipv6: 'string',
  uri: 'string',
  'uri-reference': 'string',
  uuid: 'string',
  'json-pointer': 'string',
  byte: 'string',
  int32: 'number',
  int64: 'number',
} as const

export type JsonFormat = keyof typeof JSON_FORMATS

export function isJsonFormat(name: string): name is JsonFormat {
  return Object.hasOwn(JSON_FORMATS, name)
}
