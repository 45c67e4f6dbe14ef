/* global SwaggerUIBundle */
// The addresses are relative, so that the page also stands behind a proxy that puts a path in front.
SwaggerUIBundle({
  url: 'openapi.json',
  dom_id: '#api',
  deepLinking: true,
  displayRequestDuration: true,
  docExpansion: 'list',
  defaultModelsExpandDepth: 0,
  filter: true,
  // Nobody else is asked whether the document is valid.
  validatorUrl: null,
})
