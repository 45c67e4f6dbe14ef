// Required, not imported: Node would read its 9 MB twice more, to find out whether it is a module and what it exports,
// which took a deploy's process 0.6 s. Not in one line, which Node would follow for the same reason.
const api = require('typescript-api')

module.exports = api
