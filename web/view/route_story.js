// One route: where the next request would go, and why not elsewhere (`POST /api/explain`).

import { span } from "../lib/format.js";
import { html } from "../lib/html.js";
import { grouped } from "../lib/words.js";
import { Candidates } from "./decision_story.js";
import { BackendLink } from "./parts.js";

/** @typedef {import("../data/store.js").State} State */

/** @param {{ app: any, state: State, story: any }} props */
export function RouteStory({ state, story }) {
  const name = state.place?.id;
  const route = state.known.snapshot?.routes.find((it) => it.name === name);
  const candidates = (story.explanation?.candidates ?? []).map(normal);
  const chosen = candidates.find((/** @type {any} */ it) => it.verdict === "chosen");
  const stats = route?.stats;
  return html`
    ${route?.about && html`<p>${route.about}</p>`}
    <p class="lead">${chosen ? html`The next request would go to <${BackendLink}
      id=${chosen.backend} />.` : "Nothing could answer the next request."}</p>
    ${stats && html`<dl class="tally">
      <div><dd>${grouped(stats.requests)}</dd><dt>requests</dt></div>
      <div class=${stats.failed > 0 ? "hurt" : ""}><dd>${grouped(stats.failed)}</dd>
        <dt>failed</dt></div>
      <div><dd>${grouped(stats.hops)}</dd><dt>hops</dt></div>
      <div><dd>${span(stats.p95_ms)}</dd><dt>p95</dt></div>
      <div><dd>${grouped(stats.sessions)}</dd><dt>sessions</dt></div>
      <div><dd>${grouped(stats.moved)}</dd><dt>moved</dt></div>
    </dl>`}
    <h3>Candidates</h3>
    <${Candidates} candidates=${candidates} />`;
}

/**
 * A candidate of an explanation in the form of a decision's.
 * @param {any} it
 */
const normal = (it) => ({
  backend: it.backend ?? it.target ?? it.id,
  tier: it.tier ?? 0,
  verdict: typeof it.verdict === "string" ? it.verdict : Object.keys(it.verdict ?? {})[0] ?? "",
  obstacles: it.obstacles ?? [],
});
