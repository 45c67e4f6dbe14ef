/**
 * By the mark an agent sees that a secret may have been cut in two. Between the halves of a character is no place to
 * cut.
 */
export function clip(text: string, most: number): string {
  if (text.length <= most) return text
  const isSplit = (text.charCodeAt(most - 1) & 0xfc00) === 0xd800
  return `${text.slice(0, isSplit ? most - 1 : most)}…`
}
