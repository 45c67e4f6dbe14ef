/* global SwaggerUIBundle */
// The addresses are relative, so that the page also stands behind a proxy that puts a path in front.
const own = new URL('..', location.href).href.replace(/\/$/, '')
// It fetches the document before it is there.
globalThis.ui = SwaggerUIBundle({
  url: 'openapi.json',
  dom_id: '#api',
  deepLinking: true,
  displayRequestDuration: true,
  docExpansion: 'list',
  defaultModelsExpandDepth: 0,
  filter: true,
  // Nobody else is asked whether the document is valid.
  validatorUrl: null,
  // The document names the public address. The page may be open under another one, and may ask nobody but its own.
  requestInterceptor(request) {
    const server = globalThis.ui?.specSelectors.specJson().getIn(['servers', 0, 'url'])
    if (server && server !== '/' && request.url.startsWith(`${server}/`))
      request.url = own + request.url.slice(server.length)
    return request
  },
})
