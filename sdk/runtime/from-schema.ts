/** JSON Schema, as far as it is used to tell the type of an answer. All other keywords are taken as well. */
export interface JsonSchema {
  readonly type?: string | readonly string[]
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly properties?: { readonly [name: string]: JsonSchema }
  readonly required?: readonly string[]
  readonly items?: JsonSchema
  readonly [keyword: string]: unknown
}

/**
 * The type that a schema describes, where it is written out in place; `unknown` where it says nothing that is
 * understood.
 */
export type FromSchema<S> = S extends { readonly const: infer Value }
  ? Value
  : S extends { readonly enum: readonly (infer Value)[] }
    ? Value
    : S extends { readonly type: infer Name }
      ? FromType<S, Name extends readonly (infer Each)[] ? Each : Name>
      : unknown

/** One after the other where a schema names several. */
type FromType<S, Name> = Name extends 'string'
  ? string
  : Name extends 'number' | 'integer'
    ? number
    : Name extends 'boolean'
      ? boolean
      : Name extends 'null'
        ? null
        : Name extends 'array'
          ? FromItems<S>[]
          : Name extends 'object'
            ? FromProperties<S>
            : unknown

type FromItems<S> = S extends { readonly items: infer Items } ? FromSchema<Items> : unknown

type FromProperties<S> = S extends { readonly properties: infer Properties }
  ? Flat<
      { -readonly [Key in keyof Properties & RequiredKeys<S>]: FromSchema<Properties[Key]> } & {
        -readonly [Key in Exclude<keyof Properties, RequiredKeys<S>>]?: FromSchema<Properties[Key]>
      }
    >
  : Record<string, unknown>

type RequiredKeys<S> = S extends { readonly required: readonly (infer Key)[] } ? Key : never

type Flat<T> = { [Key in keyof T]: T[Key] }
