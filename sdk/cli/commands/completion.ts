import { Argument } from 'commander'
import type { Command } from 'commander'

const SHELLS = ['bash', 'zsh', 'fish'] as const
type Shell = (typeof SHELLS)[number]

const HELP = `
For this shell:  source <(windlass completion bash)        (zsh: the same with zsh; fish: windlass completion fish | source)
For good:        windlass completion bash > ~/.local/share/bash-completion/completions/windlass
                 windlass completion zsh > "\${fpath[1]}/_windlass"
                 windlass completion fish > ~/.config/fish/completions/windlass.fish
Workflows, environments and the latest runs are asked of the service, for a second at most.`

/** `completion` prints the script for a shell; the script asks `complete -- …` what could stand next. */
export function addCompletion(program: Command): void {
  program
    .command('completion')
    .description('Print the script that completes commands, flags and names in your shell.')
    .addArgument(new Argument('<shell>').choices([...SHELLS]))
    .addHelpText('after', HELP)
    .action(async (shell: Shell) => {
      // The library is loaded by nobody else.
      const { printScript } = await import('../completion/complete.ts')
      printScript(shell)
    })
  program
    .command('complete', { hidden: true })
    .description('Say what could stand next; called by the script of `windlass completion`.')
    .argument('[words...]')
    .allowUnknownOption()
    .action(async (args: string[]) => {
      const { complete } = await import('../completion/complete.ts')
      await complete(program, args)
    })
}
