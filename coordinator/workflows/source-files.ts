import { CUT_MARK } from '@windlass/shared/cut-mark.ts'
import type { SourceFile } from '@windlass/shared/model/workflow.ts'
import { DeployError } from './deploy-error.ts'

const MAX_FILES = 2_000
// Longer names do not fit a tar header without extensions, nor some file systems.
const MAX_PATH_BYTES = 512
const MAX_SEGMENT_BYTES = 255
/** Each folder of each file is looked at: 2,000 files in 255 folders each took half a second, and 1 GB. */
const MAX_FOLDERS = 32

/** Refuses files that could leave their folder, hide one another, or are simply too much. */
export function checkSourceFiles(files: readonly SourceFile[], mostBytes: number): void {
  if (files.length === 0)
    throw new DeployError('no files were sent: a workflow needs `workflow.jsonc` and its entry', { path: 'files' })
  if (files.length > MAX_FILES) {
    throw new DeployError(
      `${files.length} files are more than the ${MAX_FILES} allowed: leave out what the program does not import`,
      {
        path: 'files',
      },
    )
  }
  for (const { path } of files) {
    const fault = pathFault(path)
    if (fault) throw pathError(path, fault)
  }
  refuseClashes(files)
  refuseTooLarge(files, mostBytes)
  for (const { path, content } of files) if (isCut(content)) throw fileError(path, CUT)
}

const CUT =
  `ends in \`${CUT_MARK}\`, as a text does of which an answer shows the beginning only. ` +
  'get_workflow_file has it whole; or send as `changes` only what is to change'

/** Also when an editor has put the end of a line behind the mark. */
function isCut(content: string): boolean {
  return content
    .slice(-2 * CUT_MARK.length)
    .trimEnd()
    .endsWith(CUT_MARK)
}

/** What is wrong with a path, or undefined. */
function pathFault(path: string): string | undefined {
  if (path === '') return 'is empty'
  if (Buffer.byteLength(path) > MAX_PATH_BYTES) return `is longer than ${MAX_PATH_BYTES} bytes`
  // oxlint-disable-next-line no-control-regex -- control characters are exactly what is looked for
  if (/[\u0000-\u001f\u007f]/.test(path)) return 'holds a control character'
  if (path.includes('\\')) return 'holds a backslash: separate folders with `/`'
  if (path.startsWith('/') || /^[A-Za-z]:/.test(path)) return 'is absolute: give it relative to the workflow folder'
  const segments = path.split('/')
  if (segments.length - 1 > MAX_FOLDERS) return `lies in more than ${MAX_FOLDERS} folders`
  if (segments.includes('..')) return 'leaves the workflow folder: `..` is not allowed'
  if (segments.includes('.') || segments.includes(''))
    return 'has an empty or `.` part: write it plainly, such as `lib/a.ts`'
  if (segments.some((segment) => Buffer.byteLength(segment) > MAX_SEGMENT_BYTES))
    return `has a part longer than ${MAX_SEGMENT_BYTES} bytes`
  return undefined
}

/** Two names that some file system takes for one would unpack differently from machine to machine. */
function refuseClashes(files: readonly SourceFile[]) {
  const fileByKey = new Map<string, string>()
  const folderKeys = new Map<string, string>()
  for (const { path } of files) {
    const key = fold(path)
    const other = fileByKey.get(key)
    if (other === path) throw pathError(path, 'is there twice')
    if (other !== undefined) throw pathError(path, `differs from \`${other}\` only in case or accents: rename one`)
    fileByKey.set(key, path)
    for (let end = key.indexOf('/'); end !== -1; end = key.indexOf('/', end + 1))
      folderKeys.set(key.slice(0, end), path)
  }
  for (const [key, path] of fileByKey) {
    const inside = folderKeys.get(key)
    if (inside !== undefined) throw pathError(path, `is both a file and the folder of \`${inside}\`: rename one`)
  }
}

function refuseTooLarge(files: readonly SourceFile[], limitBytes: number) {
  const bytes = files.reduce((sum, { content }) => sum + Buffer.byteLength(content), 0)
  if (bytes <= limitBytes) return
  const most = `the files have ${bytes} bytes in all, and may have ${limitBytes}`
  const message = `${most}: leave out what the program does not need`
  throw new DeployError(message, { path: 'files', bytes, limitBytes })
}

function fold(path: string): string {
  return path.normalize('NFC').toLowerCase()
}

function pathError(path: string, fault: string): DeployError {
  const { message, detail } = fileError(path, fault)
  return new DeployError(message, { ...detail, path: `paths/${path}` })
}

function fileError(path: string, fault: string): DeployError {
  const shown = path.length > 200 ? `${path.slice(0, 200)}…` : path
  return new DeployError(`file ${JSON.stringify(shown)} ${fault}`, { path: `files/${path}`, file: shown })
}
