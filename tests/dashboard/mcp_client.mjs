// A small MCP client over streamable HTTP: a session, and calls in it.

async function ask(url, session, message) {
  return fetch(`${url}/mcp`, {
    method: "POST",
    headers: { "content-type": "application/json",
      accept: "application/json, text/event-stream", ...session },
    body: JSON.stringify({ jsonrpc: "2.0", ...message }),
  });
}

/** The header of a session that was opened. */
export async function openSession(url) {
  const params = { protocolVersion: "2025-06-18", capabilities: {},
    clientInfo: { name: "test", version: "1" } };
  const opened = await ask(url, {}, { id: 1, method: "initialize", params });
  await opened.text();
  const session = { "mcp-session-id": opened.headers.get("mcp-session-id") };
  await (await ask(url, session, { method: "notifications/initialized" })).text();
  return session;
}

/** The answer to a call, as text. */
export async function callTool(url, session, id, name, args) {
  const params = { name, arguments: args };
  return (await ask(url, session, { id, method: "tools/call", params })).text();
}
