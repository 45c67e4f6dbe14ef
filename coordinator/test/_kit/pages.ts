/** All pages of a list, joined by `nextCursor`: of each page the ids that `read` finds in it. */
export async function pagesOf<P extends { nextCursor: string | null }>(
  ask: (page: { cursor?: string }) => Promise<P>,
  read: (page: P) => string[],
): Promise<string[][]> {
  const pages: string[][] = []
  for (let cursor: string | null | undefined; cursor !== null;) {
    const page = await ask(cursor === undefined ? {} : { cursor })
    pages.push(read(page))
    cursor = page.nextCursor
  }
  return pages
}
