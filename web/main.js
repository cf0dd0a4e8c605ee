// The entry of the page: makes the store, the source (a gateway, or with `?demo` a recording) and
// the controller, and draws a frame whenever something changed.

import { Controller } from "./controller.js";
import { LiveSource } from "./data/live.js";
import { Store } from "./data/store.js";
import { html, render } from "./lib/html.js";
import { coalesced } from "./lib/schedule.js";
import { applyTheme } from "./lib/theme.js";
import { App } from "./view/app.js";

const root = /** @type {HTMLElement} */ (document.getElementById("root"));

const trouble = /** @type {HTMLElement} */ (document.getElementById("trouble"));

/** @type {Controller | null} */
let app = null;

const draw = coalesced(() => {
  if (!app) return;
  const { state } = app.store;
  const { snapshot } = state.known;
  document.title = snapshot ? `${snapshot.verdict.headline} · tidegate` : "tidegate";
  try {
    render(html`<${App} app=${app} state=${state} />`, root);
  } catch (problem) {
    // A page that silently stops to follow the gateway is worse than none.
    trouble.hidden = false;
    throw problem;
  }
});

async function start() {
  applyTheme();
  const query = new URLSearchParams(location.search);
  const store = new Store(draw);
  if (query.has("demo")) {
    const { DemoSource } = await import("./demo/source.js");
    app = new Controller(store, await DemoSource.load(store, query));
  } else {
    app = new Controller(store, new LiveSource());
  }
  root.replaceChildren();
  app.start();
}

start();
