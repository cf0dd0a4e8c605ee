// Shows every claim to every client, in one process, so that ending it ends all of them.
//
// One session per client: starting the programs of a session takes longer than all claims together.

import { after, before, describe, test } from "node:test";
import { CLIENTS } from "./clients.mjs";
import { KEYS, OUTAGE } from "./outage.mjs";
import { LIMIT_MS, remote } from "./scene.mjs";
import { SESSIONS_ONLY, STEPS } from "./steps.mjs";

const LIMIT = { timeout: 2 * LIMIT_MS };

before(async () => { await remote.start(); await remote.noticed(); }, LIMIT);
after(() => remote.kill(), LIMIT);

for (const [name, openAnother] of Object.entries(CLIENTS)) {
  describe(name, () => {
    let open;
    before(async () => { open = await openAnother(); }, LIMIT);
    after(async () => { await open?.close(); }, LIMIT);
    for (const [claim, show] of Object.entries({ ...STEPS, ...OUTAGE })) {
      if (openAnother.isStateless && SESSIONS_ONLY.includes(claim)) continue;
      test(`${name} ${claim}`, LIMIT, () => show(open, openAnother));
    }
    for (const [claim, show] of Object.entries(KEYS)) {
      test(`${name} ${claim}`, LIMIT, () => show(openAnother));
    }
  });
}
