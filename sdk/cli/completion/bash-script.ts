const REGISTERED = 'complete -F __windlass_complete windlass'

/** Without the package bash-completion, words that hold `=` or `:` are not joined again; all else works. */
const WITHOUT_PACKAGE = `
if ! declare -F _get_comp_words_by_ref > /dev/null; then
    _get_comp_words_by_ref() {
        cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD-1]} words=("\${COMP_WORDS[@]}") cword=$COMP_CWORD
    }
fi
`

/**
 * How the library asks: what has been typed so far would be executed by the shell, `$(…)` and all, before Enter is
 * pressed.
 */
const EVALUATED = 'out=$(eval "$requestComp" 2>/dev/null)'
/** The words as they are; the last one is empty where a new one begins. */
const ASKED = 'out=$(windlass complete -- "${words[@]:1}" 2>/dev/null)'

/**
 * The script of the library, for shells without bash-completion too, read a second time without complaint, and with
 * files.
 */
export function bashScript(script: string): string {
  if (!script.includes(REGISTERED) || !script.includes(EVALUATED))
    throw new Error('the completion script of @bomb.sh/tab registers itself, or asks, in another way')
  return script
    .replaceAll(/^readonly /gm, '')
    .replace(EVALUATED, () => ASKED)
    .replace(REGISTERED, `${WITHOUT_PACKAGE}complete -o default -F __windlass_complete windlass`)
}
