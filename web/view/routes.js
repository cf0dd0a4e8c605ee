// Routes and their tiers: who answers what, now, and how the traffic of 15 minutes was shared.

import { readCommand } from "../lib/cli.js";
import { rate, span } from "../lib/format.js";
import { html, pure } from "../lib/html.js";
import { signOf, signOfBackend } from "../lib/words.js";
import { BackendLink, More, Panel, RouteLink, ShareBar, StateGlyph } from "./parts.js";

/** @typedef {import("../data/store.js").State} State */
/** @typedef {import("../data/types.js").Route} Route */
/** @typedef {import("../data/types.js").Backend} Backend */

const ROUTES_MAX = 8;
const TARGETS_MAX = 8;

/** @param {{ app: any, state: State }} props */
export function Routes({ app, state }) {
  const snapshot = state.known.snapshot;
  if (!snapshot) return null;
  const { routes, backends } = snapshot;
  const isOpen = state.expanded.routes ?? false;
  const shown = isOpen ? routes : routes.slice(0, ROUTES_MAX);
  const selected = state.place?.kind === "route" ? state.place.id : "";
  const byId = new Map(backends.map((it) => [it.id, it]));
  return html`
    <${Panel} app=${app} name="routes" title="Routes" note="shares of the last 15 min"
      cli=${readCommand(app.origin, "api/snapshot")} json=${() => routes}>
      ${routes.length === 0 && html`<p class="empty">The config has no routes.</p>`}
      ${shown.map((route) => html`
        <${RouteRow} key=${route.name} route=${route} isSelected=${route.name === selected}
          signs=${route.tiers.flat().map((it) => signWord(it, byId)).join()} byId=${byId} />`)}
      <${More} app=${app} name="routes" hidden=${routes.length - shown.length} isOpen=${isOpen}
        what="routes" />
    </${Panel}>`;
}

/**
 * @param {import("../data/types.js").RouteTarget} target
 * @param {Map<string, Backend>} byId
 */
function signWord(target, byId) {
  const backend = byId.get(target.target);
  return backend ? signOfBackend(backend).word : target.state;
}

/**
 * `byId` is another map with every tick: the row is compared by what it shows of it (`signs`).
 */
const RouteRow = pure(drawRoute, ["route", "signs", "isSelected"]);

/** @param {{ route: Route, isSelected: boolean, byId: Map<string, Backend>, signs: string }} props */
function drawRoute({ route, isSelected, byId }) {
  const { stats } = route;
  return html`
    <article class="route ${isSelected ? "selected" : ""}" aria-label="route ${route.name}">
      <h3><${RouteLink} name=${route.name} />
        ${route.is_default && html` <small class="tag">default</small>`}
        ${stats && html`<small class="facts">
          <span>${rate(stats.rps)}/s</span><span>p95 ${span(stats.p95_ms)}</span>
          ${stats.hops > 0 && html`<span>${stats.hops} hops</span>`}
          ${stats.failed > 0 && html`<span class="hurt">${stats.failed} failed</span>`}
        </small>`}
      </h3>
      <table>
        <caption class="unseen">Tiers of route ${route.name}</caption>
        <thead class="unseen"><tr><th>tier</th><th>target</th><th>share</th></tr></thead>
        <tbody>${route.tiers.map((tier, rank) => tierRows(tier, rank, route, byId))}</tbody>
      </table>
    </article>`;
}

/**
 * @param {Route["tiers"][number]} tier
 * @param {number} rank
 * @param {Route} route
 * @param {Map<string, Backend>} byId
 */
function tierRows(tier, rank, route, byId) {
  const cut = tier.length - TARGETS_MAX;
  const rows = tier.slice(0, TARGETS_MAX).map((target, index) => {
    const backend = byId.get(target.target);
    const sign = backend ? signOfBackend(backend) : signOf(target.state);
    const isUsed = route.resolves_to.includes(target.target);
    return html`
      <tr key=${target.target} class=${isUsed ? "used" : ""}>
        <th scope="row" class="tier">${index === 0 ? `tier ${rank}` : ""}</th>
        <td><${StateGlyph} sign=${sign} /> <${BackendLink} id=${target.target} />
          ${isUsed && html`<span class="now">← in use</span>`}</td>
        <td class="num"><${ShareBar} percent=${target.share_percent} tone=${sign.tone} /></td>
      </tr>`;
  });
  if (cut > 0) rows.push(html`<tr key="more"><th></th><td class="quiet">and ${cut} more</td></tr>`);
  return rows;
}
