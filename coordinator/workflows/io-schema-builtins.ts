import type ts from './typescript-api.cjs'

/** Types of the language itself that JSON.stringify empties or turns into something else, and what to use instead. */
const INSTEAD: Record<string, string> = {
  Map: 'a plain object, or an array of entries',
  ReadonlyMap: 'a plain object, or an array of entries',
  WeakMap: 'a plain object',
  Set: 'an array',
  ReadonlySet: 'an array',
  WeakSet: 'an array',
  WeakRef: 'the value itself',
  Promise: 'the awaited value',
  PromiseLike: 'the awaited value',
  RegExp: 'its source as a string',
  Error: 'an object with its message',
  ArrayBuffer: 'a base64 string',
  SharedArrayBuffer: 'a base64 string',
  DataView: 'a base64 string',
  BigInt: 'a string',
  Symbol: 'a string',
  Function: 'data',
}
const BOXED: Record<string, string> = { String: 'string', Number: 'number', Boolean: 'boolean' }

export type Builtin =
  | { kind: 'date' }
  | { kind: 'boxed'; type: string }
  | { kind: 'refused'; name: string; instead: string }

/** What the language's own types become; undefined for everybody else's, even of the same name. */
export function builtinOf(type: ts.Type, program: ts.Program): Builtin | undefined {
  const symbol = type.symbol as ts.Symbol | undefined
  if (!symbol?.declarations?.some((declaration) => program.isSourceFileDefaultLibrary(declaration.getSourceFile())))
    return undefined
  const { name } = symbol
  if (name === 'Date') return { kind: 'date' }
  const boxed = BOXED[name]
  if (boxed !== undefined) return { kind: 'boxed', type: boxed }
  const instead = INSTEAD[name] ?? hintByForm(name)
  return instead === undefined ? undefined : { kind: 'refused', name, instead }
}

function hintByForm(name: string): string | undefined {
  if (/^(Big)?(Int|Uint|Float)\d+(Clamped)?Array$/.test(name)) return 'an array of numbers, or a base64 string'
  if (/(Iterator|Iterable|Generator)(Object)?$/.test(name)) return 'an array'
  return name.endsWith('Error') ? 'an object with its message' : undefined
}
