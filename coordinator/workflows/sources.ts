import { LRUCache } from 'lru-cache'
import type { OrgId } from '@windlass/shared/ids.ts'
import type { Log } from '@windlass/shared/log.ts'
import type { SourceFile } from '@windlass/shared/model/workflow.ts'
import { probe } from '@windlass/shared/probe.ts'
import { type PackedFile, unpack } from '../bundles/unpack.ts'
import type { BytesInFlight } from '../limits/bytes-in-flight.ts'
import type { Pace } from '../pace.ts'
import { contentKey } from '../objects/key.ts'
import type { ObjectStore } from '../objects/store.ts'
import { missingObject } from './object-faults.ts'

/** The files of deployed versions. */
export interface Sources {
  of(orgId: OrgId, digest: string): Source
}

/**
 * The files of one version, 50 MiB or 2,000 of them. A deploy alone has them in memory as a whole: whoever reads them
 * gets them in pieces, between which the event loop goes on, and has room for so many readers as an org may have.
 */
export interface Source {
  readonly digest: string
  /** What is known already is told without unpacking anything. */
  paths(): Promise<readonly string[]>
  /** One file, or `most` characters of it from `from` on. The files behind it are not unpacked. */
  read(path: string, most: number, from?: number): Promise<Beginning | undefined>
  /** All files, of their texts no more than an answer with `most` characters in all could show. */
  glance(most: number): Promise<Beginning[]>
  /** All files but these, whole. What they take in memory is told to `take` piece by piece, which may throw. */
  others(but: ReadonlySet<string>, take: (bytes: number) => void): Promise<SourceFile[]>
  /** All files as items of a JSON list, in pieces. */
  json(): AsyncGenerator<string>
}

/** A file as far as it was asked for. */
interface Beginning {
  path: string
  text: string
  /** Number of characters that the whole has. */
  chars: number
}

export interface SourcesParts {
  objects: ObjectStore
  log: Log
  inFlight: BytesInFlight
  pace: Pace
}

/** What one reader has in memory: pieces on their way from the disk to the socket, texts of 400,000 characters. */
const READER_BYTES = 1024 * 1024
/** Packs whose paths are kept: at most 1 MiB each. */
const MOST_KNOWN = 32
/** Every text of an answer is shown so far at least. */
const LEAST_TEXT = 200

export function createSources({ objects, log, inFlight, pace }: SourcesParts): Sources {
  /** A digest names the same paths for good. */
  const known = new LRUCache<string, readonly string[]>({ max: MOST_KNOWN })

  async function* walk(orgId: OrgId, digest: string): AsyncGenerator<PackedFile> {
    const holding = inFlight.hold(orgId)
    const paths: string[] = []
    try {
      holding.take(READER_BYTES)
      const packed = await objects.stream(contentKey(digest))
      if (!packed) throw missingObject(log, digest)
      for await (const file of unpack(packed, () => pace.next(orgId))) {
        paths.push(file.path)
        yield file
      }
      known.set(digest, paths)
    } finally {
      holding.release()
      probe('source.left', { files: paths.length })
    }
  }

  return {
    of: (orgId, digest) => {
      const files = () => walk(orgId, digest)
      return {
        digest,
        paths: async () => known.get(digest) ?? (await pathsOf(files())),
        read: async (path, most, from = 0) =>
          known.get(digest)?.includes(path) === false ? undefined : readOne(files(), path, { most, from }),
        glance: (most) => glanceAt(files(), most),
        others: (but, take) => othersOf(files(), but, take),
        json: () => jsonOf(files()),
      }
    },
  }
}

async function pathsOf(files: AsyncIterable<PackedFile>): Promise<string[]> {
  const paths: string[] = []
  for await (const { path } of files) paths.push(path)
  return paths
}

async function readOne(files: AsyncIterable<PackedFile>, path: string, range: Range): Promise<Beginning | undefined> {
  for await (const file of files) if (file.path === path) return await stretchOf(file, range)
  return undefined
}

interface Range {
  from: number
  most: number
}

async function stretchOf(file: PackedFile, { from, most }: Range): Promise<Beginning> {
  let text = ''
  let chars = 0
  for await (const piece of file.text()) {
    text += piece.slice(Math.max(0, from - chars), Math.max(0, from + most - chars))
    chars += piece.length
  }
  return { path: file.path, text, chars }
}

async function glanceAt(files: AsyncIterable<PackedFile>, most: number): Promise<Beginning[]> {
  const seen: Beginning[] = []
  let longest = most
  let held = 0
  for await (const file of files) {
    const beginning = await stretchOf(file, { from: 0, most: longest })
    seen.push(beginning)
    held += beginning.text.length
    // With texts of half the length there is still more than fits, so none of them could be shown any further.
    while (held > 2 * most && longest > LEAST_TEXT) {
      longest = Math.max(LEAST_TEXT, Math.ceil(longest / 2))
      held = 0
      for (const one of seen) {
        one.text = one.text.slice(0, longest)
        held += one.text.length
      }
    }
  }
  return seen
}

async function othersOf(
  files: AsyncIterable<PackedFile>,
  but: ReadonlySet<string>,
  take: (bytes: number) => void,
): Promise<SourceFile[]> {
  const others: SourceFile[] = []
  for await (const file of files) {
    if (but.has(file.path)) continue
    let content = ''
    for await (const piece of file.text()) {
      take(Buffer.byteLength(piece))
      content += piece
    }
    others.push({ path: file.path, content })
  }
  return others
}

async function* jsonOf(files: AsyncIterable<PackedFile>): AsyncGenerator<string> {
  let before = ''
  for await (const file of files) {
    yield `${before}{"path":${JSON.stringify(file.path)},"content":"`
    for await (const piece of file.text()) yield JSON.stringify(piece).slice(1, -1)
    yield '"}'
    before = ','
  }
}
