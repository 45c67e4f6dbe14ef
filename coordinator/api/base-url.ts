/** Where it is told how the MCP endpoint is protected: the path is made of that of the endpoint, as RFC 9728 has it. */
export const MCP_PATH = '/mcp/v1'
export const MCP_METADATA_PATH = `/.well-known/oauth-protected-resource${MCP_PATH}`
