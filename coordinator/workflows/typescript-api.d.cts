import api = require('typescript-api')

export = api
