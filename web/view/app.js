// The whole page, from the verdict down to the footer.

import { html } from "../lib/html.js";
import { Backends } from "./backends.js";
import { DemoBar } from "./demo_bar.js";
import { Dialogs } from "./dialogs.js";
import { Drawer } from "./drawer.js";
import { Failovers } from "./failovers.js";
import { Header, RecordsBanner, StaleBanner } from "./header.js";
import { Callers, Changes, Mcp, Sessions } from "./lists.js";
import { Routes } from "./routes.js";
import { Timeline } from "./timeline.js";
import { Verdict } from "./verdict.js";

/** @typedef {import("../data/store.js").State} State */

/** Panels in the order of their keys. */
export const PANELS = [
  "verdict", "routes", "backends", "timeline", "failovers", "mcp", "callers", "changes",
];

/** @param {{ app: any, state: State }} props */
export function App({ app, state }) {
  const { place } = state;
  const hasDrawer = place != null && place.kind !== "time";
  const view = { app, state };
  return html`
    <div class="page ${state.phase === "lost" ? "stale" : ""} ${hasDrawer ? "with-drawer" : ""}">
      <${Header} ...${view} />
      <${StaleBanner} state=${state} />
      <${RecordsBanner} state=${state} />
      ${state.demo && html`<${DemoBar} ...${view} />`}
      ${state.phase === "login" ? html`<${LoginWall} app=${app} />` : html`
        <main id="main" tabindex="-1">
          <${Verdict} ...${view} />
          ${state.known.snapshot && html`
            <div class="columns">
              <${Routes} ...${view} />
              <${Backends} ...${view} />
            </div>
            <${Timeline} ...${view} />
            <div class="columns lower">
              <div><${Failovers} ...${view} /><${Callers} ...${view} /></div>
              <div><${Mcp} ...${view} /><${Sessions} ...${view} /><${Changes} ...${view} /></div>
            </div>`}
        </main>`}
      <${Footer} ...${view} />
      ${hasDrawer && html`<${Drawer} key=${place.kind + place.id} ...${view} />`}
      <${Dialogs} ...${view} />
      <p class="notice" role="status">${state.notice}</p>
    </div>`;
}

/** @param {{ app: any }} props */
const LoginWall = ({ app }) => html`
  <main id="main" class="wall">
    <h1>Log in to see this gateway</h1>
    <p>This admin listener can be reached from other machines, so reading needs the admin token.</p>
    <p><button type="button" class="main" onClick=${() => app.dialog("login")}>Log in</button>${" "}
      or look at <a href="?demo">the demo</a>.</p>
  </main>`;

/** @param {{ app: any, state: State }} props */
function Footer({ state }) {
  const snapshot = state.known.snapshot;
  return html`
    <footer>
      <span class="hint"><code>tidegate status --watch</code> shows this in a terminal</span>
      <a href="api/snapshot">JSON</a><a href="metrics">metrics</a>
      ${!state.demo && html`<a href="?demo">demo</a>`}
      ${snapshot && html`<span class="spring"></span>
        <span>${state.demo ? "recorded" : `v${snapshot.version}`}</span>
        <span>config ${snapshot.config.sha}</span>`}
    </footer>`;
}
