export const run = () => new Promise(() => {})
