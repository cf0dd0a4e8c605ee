// Runs every test of this folder in one process, so that ending it ends all of them.

import "./openai.test.mjs";
import "./anthropic.test.mjs";
import "./dialects.test.mjs";
