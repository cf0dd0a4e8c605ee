// MCP sessions over a balancer, with the official TypeScript client.
//
//     node sessions.mjs URL SESSIONS CALLS
//
// prints what came of it, and ends with 1 if a call or a session failed.

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import {
  StreamableHTTPClientTransport,
} from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [url, sessions, calls] =
  [new URL(process.argv[2]), Number(process.argv[3]), Number(process.argv[4])];

async function session() {
  const client = new Client({ name: "fleet", version: "1" });
  const transport = new StreamableHTTPClientTransport(url);
  await client.connect(transport);
  let failed = 0;
  for (let call = 1; call <= calls / sessions; call += 1) {
    const result = await client.callTool({ name: "count", arguments: {} });
    if (result.isError || !result.content[0].text.endsWith(`call ${call}`)) failed += 1;
  }
  await transport.terminateSession();
  await client.close();
  return failed;
}

const ended = await Promise.allSettled(Array.from({ length: sessions }, session));
const broken = ended.filter((it) => it.status === "rejected");
const failed = ended.reduce((sum, it) => sum + (it.value ?? 0), 0);
for (const it of broken.slice(0, 3)) console.error(String(it.reason));
console.log(`${calls} calls in ${sessions} sessions, round robin over 3 replicas: ` +
  `${broken.length} sessions broken, ${failed} calls failed`);
process.exit(broken.length === 0 && failed === 0 ? 0 : 1);
