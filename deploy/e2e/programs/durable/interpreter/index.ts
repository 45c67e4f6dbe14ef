import { appendFileSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { phase, requestInput, RunFailedError, sleep, step, workflows } from 'windlass'
import type { RunContext } from 'windlass'
import type { Input, Node, Note } from './ast.ts'
import { described, made } from './values.ts'

const LOOK_MS = 10

/** Executes the program that is its input, and returns what that came to. */
export async function run(input: Input, context: RunContext): Promise<unknown> {
  const path = input.path ?? ''
  note('start', path)
  return evaluate(input.program, path)

  function note(what: Note['what'], path: string, more: Partial<Note> = {}): void {
    if (input.folder === undefined || input.key === undefined) return
    const line: Note = { what, path, run: context.runId, attempt: context.attempt, pid: process.pid, ...more }
    // One write with O_APPEND: what is in the file is whole and in order, whoever is killed.
    appendFileSync(join(input.folder, input.key), `${JSON.stringify(line)}\n`)
  }

  async function evaluate(node: Node, path: string): Promise<unknown> {
    switch (node.op) {
      case 'step':
        return stepped(node, path)
      case 'sleep':
        await sleep(node.ms)
        return 'slept'
      case 'delay':
        await wait(node.ms)
        return 'delayed'
      case 'gate':
        while (!existsSync(node.file)) await wait(LOOK_MS)
        return 'open'
      case 'input':
        return answered(node)
      case 'child': {
        const inner: Input = { ...input, program: node.program, path: `${path}/c` }
        return workflows.call(node.workflow ?? context.workflow.slug, inner)
      }
      case 'seq': {
        const values: unknown[] = []
        for (const [index, each] of node.nodes.entries()) values.push(await evaluate(each, `${path}/${index}`))
        return values
      }
      case 'all':
        return Promise.all(node.nodes.map((each, index) => evaluate(each, `${path}/${index}`)))
      case 'race':
        return raced(node, path)
      case 'log':
        console.log(node.text)
        return 'logged'
      case 'write':
        process.stdout.write(node.text)
        return 'written'
      case 'phase':
        phase(node.name)
        return 'named'
      case 'crash':
        if (context.attempt <= node.upTo) process.kill(process.pid, 'SIGKILL')
        return 'alive'
      case 'throw':
        if (context.attempt <= (node.upTo ?? Infinity)) throw new Error(node.message)
        return 'passed'
      case 'catch':
        return evaluate(node.body, `${path}/b`).catch((error: unknown) => ({ caught: messageOf(error) }))
      case 'finally':
        return concluded(node, path)
      default:
        return context.attempt
    }
  }

  async function stepped(node: Node & { op: 'step' }, path: string): Promise<unknown> {
    const value: unknown = await step(node.name, async () => {
      note('step', path)
      if (node.takesMs) await wait(node.takesMs)
      if (node.fails !== undefined) throw new Error(node.fails)
      return node.inside ? evaluate(node.inside, `${path}/i`) : made(node.value)
    })
    return node.inside ? value : described(value)
  }

  function answered({ question, schema, timeoutMs, onTimeout }: Node & { op: 'input' }): Promise<unknown> {
    return requestInput({
      prompt: JSON.stringify(question),
      ...(schema && { schema }),
      ...(timeoutMs !== undefined && { timeout: timeoutMs }),
      ...(onTimeout !== undefined && { onTimeout: { answer: onTimeout } }),
    })
  }

  async function raced(node: Node & { nodes: Node[] }, path: string): Promise<unknown> {
    const entries = node.nodes.map(async (each, index) => ({ index, value: await evaluate(each, `${path}/${index}`) }))
    const { index, value } = await Promise.race(entries)
    note('race', path, { winner: index })
    return { winner: index, value }
  }

  async function concluded(node: Node & { op: 'finally' }, path: string): Promise<unknown> {
    let name = ''
    try {
      return await evaluate(node.body, `${path}/b`)
    } catch (error) {
      name = (error as Error).name
      throw error
    } finally {
      console.log(`${node.text} ${name}`)
    }
  }
}

/** Of a child that has failed the message of its own error. */
function messageOf(error: unknown): string {
  const message = error instanceof RunFailedError ? error.error.message : (error as Error).message
  return `${(error as Error).name}: ${message}`
}
