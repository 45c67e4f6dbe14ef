export const start = () => {}
