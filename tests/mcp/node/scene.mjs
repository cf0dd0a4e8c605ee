// The scene as the programs see it: the gateway, what its servers offer, and one to kill.

import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

export const ENDPOINT = new URL(`${process.env.TIDEGATE_URL}/mcp`);
export const KEY = process.env.TIDEGATE_KEY;
export const NARROW_KEY = process.env.TIDEGATE_NARROW_KEY;
export const FILES = process.env.FILES;
export const REPOSITORY = process.env.REPOSITORY;
export const OFFERED = JSON.parse(readFileSync(process.env.OFFERED, "utf8"));

// Whatever takes longer hangs. Starting programs takes seconds on a busy machine.
export const LIMIT_MS = 60_000;
// What is refused because a server is down is refused at once, not after some timeout.
export const AT_ONCE_MS = 5_000;

// The names under which a client is offered the tools of these servers. `asking`: whether the
// client can be asked for sampling, elicitation and roots.
export function tools(servers, { asking }) {
  const own = (server) => [
    ...OFFERED[server].tools, ...((asking && OFFERED[server].asking_tools) || []),
  ];
  return servers.flatMap((server) => own(server).map((tool) => `${server}_${tool}`)).sort();
}

// Waits for something that is told, not answered.
export async function until(what) {
  const end = Date.now() + LIMIT_MS;
  while (!(await what())) {
    if (Date.now() > end) throw new Error(`in vain: ${what}`);
    await sleep(20);
  }
}

// Has to settle at once.
export async function atOnce(promise) {
  const late = AbortSignal.timeout(AT_ONCE_MS);
  return Promise.race([
    promise,
    new Promise((_, fail) => late.addEventListener("abort", () => fail(late.reason))),
  ]);
}

// The server that is reached by HTTP; it can be killed and started again.
export const remote = {
  port: Number(new URL(process.env.EVERYTHING_URL).port),
  process: undefined,

  async start() {
    this.process = spawn(process.execPath, [process.env.EVERYTHING, "streamableHttp"], {
      env: { ...process.env, PORT: String(this.port) },
      stdio: "ignore",
    });
    await until(() => new Promise((done) => {
      const probe = connect(this.port, "127.0.0.1");
      probe.on("connect", () => { probe.destroy(); done(true); });
      probe.on("error", () => done(false));
    }));
  },

  // The gateway has probed it before it listened: waits until it has been noticed.
  async noticed() {
    const headers = { authorization: `Bearer ${KEY}` };
    await until(async () => {
      const answer = await fetch(`${process.env.TIDEGATE_URL}/v1/health`, { headers });
      const { healthy, state } = (await answer.json()).backends["mcp:everything-http"];
      return healthy && state === "closed";
    });
  },

  async kill() {
    if (this.process === undefined) return;
    const ended = new Promise((done) => this.process.on("exit", done));
    this.process.kill("SIGKILL");
    await ended;
    this.process = undefined;
  },
};
