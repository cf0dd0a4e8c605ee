// One backend in full: its state and why, what an operator may do, its transitions, and the latest
// requests that met it.

import { clock, moment, share, span } from "../lib/format.js";
import { hashOf } from "../lib/hash.js";
import { html } from "../lib/html.js";
import { grouped, isTroubled, signOf, signOfBackend } from "../lib/words.js";
import { Actions } from "./actions.js";
import { storyOf } from "./backends.js";
import { outcomeOf } from "./failovers.js";
import { StateSign } from "./parts.js";

/** @typedef {import("../data/types.js").BackendStory} Story */
/** @typedef {import("../data/store.js").State} State */

/** @param {{ app: any, state: State, story: Story }} props */
export function BackendStory({ app, state, story }) {
  const live = state.known.snapshot?.backends.find((it) => it.id === story.backend.id);
  const backend = live ?? story.backend;
  const { stats } = backend;
  return html`
    <p class="lead"><${StateSign} sign=${signOfBackend(backend)} />${" "}
      ${isTroubled(backend) ? storyOf(backend, app.now())
        : `since ${moment(backend.since_unix_ms, app.now())}`}</p>
    ${story.sentence && html`<p>${story.sentence}</p>`}
    ${stats && html`<dl class="tally">
      <div><dd>${share(stats.ok_percent)}</dd><dt>ok</dt></div>
      <div><dd>${grouped(stats.attempts)}</dd><dt>attempts</dt></div>
      <div><dd>${grouped(stats.failures)}</dd><dt>failed</dt></div>
      <div><dd>${span(stats.p95_ms)}</dd><dt>p95</dt></div>
      <div><dd>${span(stats.first_content_p95_ms)}</dd><dt>p95 to content</dt></div>
      <div><dd>${backend.in_flight}</dd><dt>in flight</dt></div>
    </dl>`}
    <${Actions} key=${backend.id} app=${app} state=${state} backend=${backend} />
    <h3>Transitions</h3>
    <${Transitions} id=${backend.id} story=${story} state=${state} now=${app.now()} />
    <h3>Latest requests that met it</h3>
    ${story.recent.length === 0 && html`<p class="quiet">None that the gateway still knows.</p>`}
    <ol class="changes">${story.recent.map((it) => {
      const attempt = it.attempts.find((one) => one.backend === backend.id);
      return html`<li key=${it.id}>
        <time>${clock(it.at_unix_ms)}</time><span></span>
        <span><a class="id" href=${hashOf("decision", it.id)}>${it.id}</a>${" "}
          <span class=${attempt?.outcome === "success" ? "quiet" : "open"}>
            ${attempt && outcomeOf(attempt)}</span>${" "}
          <span class="quiet">${attempt && span(attempt.ms)}</span></span>
      </li>`;
    })}</ol>`;
}

/** @type {Record<string, import("../lib/words.js").Sign>} */
const TONES = { good: signOf("closed"), trial: signOf("half_open"), off: signOf("off") };

/**
 * Its transitions as the gateway tells them, else as far as the page has seen them.
 * @param {{ id: string, story: Story, state: State, now: number }} props
 */
function Transitions({ id, story, state, now }) {
  const told = story.transitions.map((it) => ({
    at: it.at_unix_ms, sign: signOf(it.to),
    text: `${signOf(it.from).word} → ${signOf(it.to).word}${it.detail ? `: ${it.detail}` : ""}`
      + `${it.until_unix_ms ? `, until ${moment(it.until_unix_ms, now)}` : ""}`,
  }));
  const seen = state.known.changes.filter((it) => it.id === id && it.kind === "transition")
    .map((it) => ({ at: it.at, sign: TONES[it.tone] ?? signOf("open"), text: it.text }));
  const shown = told.length > 0 ? told : seen;
  if (shown.length === 0) return html`<p class="quiet">None in 15 min.</p>`;
  return html`
    <ol class="changes">${shown.map((it) => html`
      <li key=${it.at}>
        <a href=${hashOf("backend", id, it.at)}><time>${moment(it.at, now)}</time></a>
        <span class="glyph ${it.sign.tone}" aria-hidden="true">${it.sign.glyph}</span>
        <span>${it.text}</span>
      </li>`)}
    </ol>`;
}
