import type { SourceFile } from '@windlass/shared/model/workflow.ts'

/** Parts of files, in their order: what follows of a file has its path again. */
export type FilePiece = readonly SourceFile[]

/** Printed as JSON in some 5 ms. */
const PIECE_CHARS = 512 * 1024

/** The files in messages of one size, however many they are and however large. */
export function piecesOf(files: readonly SourceFile[]): FilePiece[] {
  const pieces: SourceFile[][] = [[]]
  let room = PIECE_CHARS
  for (const { path, content } of files) {
    let at = 0
    do {
      if (room <= 0) {
        pieces.push([])
        room = PIECE_CHARS
      }
      const part = content.slice(at, at + room)
      pieces.at(-1)!.push({ path, content: part })
      at += part.length
      room -= part.length + path.length + FIELDS_CHARS
    } while (at < content.length)
  }
  return pieces
}

/** What JSON adds to a file. */
const FIELDS_CHARS = 30

export function filesOf(pieces: readonly FilePiece[]): SourceFile[] {
  const files = new Map<string, string[]>()
  for (const { path, content } of pieces.flat()) {
    const parts = files.get(path)
    if (parts) parts.push(content)
    else files.set(path, [content])
  }
  return [...files].map(([path, parts]) => ({ path, content: parts.join('') }))
}
