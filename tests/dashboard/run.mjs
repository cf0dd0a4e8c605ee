// Runs every test of this folder in one process, so that ending it ends all of them.

import "./unit.test.mjs";
import "./page.test.mjs";
import "./demo.test.mjs";
import "./load.test.mjs";
import "./gateway.test.mjs";
import "./running.test.mjs";
