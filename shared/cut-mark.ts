/**
 * Stands at the end of a text of which an answer shows the beginning only. No file that ends so is deployed: it would
 * take the place of the whole.
 */
export const CUT_MARK = '… [cut by Windlass]'
