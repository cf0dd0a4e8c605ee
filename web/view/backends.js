// Backends: one row each, those in trouble first, with the reason and the time of return.

import { snapshotCommand } from "../lib/cli.js";
import { seconds, share, span } from "../lib/format.js";
import { html, pure } from "../lib/html.js";
import { isTroubled, signOfBackend } from "../lib/words.js";
import { BackendLink, More, Panel, StateSign } from "./parts.js";

/** @typedef {import("../data/store.js").State} State */
/** @typedef {import("../data/types.js").Backend} Backend */

const ROWS_MAX = 12;
const ROWS_ALL = 400;

/** @param {{ app: any, state: State }} props */
export function Backends({ app, state }) {
  const snapshot = state.known.snapshot;
  if (!snapshot) return null;
  const isOpen = state.expanded.backends ?? false;
  const needle = state.filter.toLowerCase();
  const found = snapshot.backends.filter((it) => it.id.toLowerCase().includes(needle));
  const ordered = [...found.filter(isTroubled), ...found.filter((it) => !isTroubled(it))];
  const shown = ordered.slice(0, isOpen ? ROWS_ALL : ROWS_MAX);
  const bad = snapshot.backends.filter(isTroubled).length;
  const note = bad > 0 ? `${bad} of ${snapshot.backends.length} in trouble`
    : `${snapshot.backends.length}, all in use`;
  const selected = state.place?.kind === "backend" ? state.place.id : "";
  return html`
    <${Panel} app=${app} name="backends" title="Backends" note=${note}
      cli=${snapshotCommand(app.origin)} json=${() => snapshot.backends}>
      ${snapshot.backends.length > ROWS_MAX && html`
        <input type="search" class="filter" placeholder="Filter by name" id="filter"
          aria-label="Filter backends by name" value=${state.filter}
          onInput=${(/** @type {any} */ it) => app.set({ filter: it.target.value })} />`}
      <table class="rows">
        <caption class="unseen">Backends, those in trouble first</caption>
        <thead><tr>
          <th scope="col">backend</th><th scope="col">state</th><th scope="col" class="num">ok</th>
          <th scope="col" class="num">p95</th>
          <th scope="col" class="num wide">in flight</th><th scope="col" class="num">share</th>
        </tr></thead>
        <tbody>${shown.map((it) => html`
          <${BackendRow} key=${it.id} backend=${it} isSelected=${it.id === selected}
            isFresh=${isFresh(state, it.id, app.now())}
            now=${isTroubled(it) ? state.second : 0} />`)}
        </tbody>
      </table>
      ${found.length === 0 && html`<p class="empty">No backend has “${state.filter}” in its name.</p>`}
      <${More} app=${app} name="backends" hidden=${found.length - shown.length} isOpen=${isOpen}
        what="backends" />
    </${Panel}>`;
}

/** A change is pointed out for 4 s. */
const PULSE_MS = 4000;

/**
 * @param {State} state
 * @param {string} id
 * @param {number} now
 */
const isFresh = (state, id, now) => now - (state.known.pulses[id] ?? -Infinity) < PULSE_MS;

const BackendRow = pure(drawRow);

/**
 * @param {{ backend: Backend, isSelected: boolean, isFresh: boolean, now: number }} props
 */
function drawRow({ backend, isSelected, isFresh: fresh, now }) {
  const { stats } = backend;
  const sign = signOfBackend(backend);
  return html`
    <tr class="${isSelected ? "selected" : ""} ${fresh ? "fresh" : ""}" data-backend=${backend.id}>
      <th scope="row"><${BackendLink} id=${backend.id} /></th>
      <td><${StateSign} sign=${sign} /></td>
      <td class="num">${share(stats?.ok_percent)}</td>
      <td class="num">${span(stats?.p95_ms)}</td>
      <td class="num wide">${backend.in_flight}</td>
      <td class="num">${share(stats?.share_percent)}</td>
    </tr>
    ${now > 0 && html`<tr class="story ${isSelected ? "selected" : ""}">
      <td colspan="6">${storyOf(backend, now)}</td></tr>`}`;
}

/**
 * Why, since when, and when it is used again.
 * @param {Backend} it
 * @param {number} now
 */
export function storyOf(it, now) {
  const parts = [];
  const why = it.why ?? it.standing_reason ?? "";
  if (it.action) {
    const until = it.action.until_unix_ms;
    const left = until ? `, ends in ${span(until - now)}` : "";
    parts.push(`${it.action.deed}${it.action.reason ? `: ${it.action.reason}` : ""}${left}`);
  } else if (why) {
    parts.push(why);
  }
  if (it.since_unix_ms) parts.push(`for ${span(Math.max(1000, now - it.since_unix_ms))}`);
  const next = it.re_entry_unix_ms;
  if (next != null && !it.action) {
    parts.push(next > now ? `next trial in ${seconds(next - now)}` : "trial due");
  }
  if (it.needs && !it.action) parts.push(`needs ${it.needs}`);
  return parts.join(" · ");
}
