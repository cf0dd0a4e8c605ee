// The verdict: one sentence from the gateway, three numbers, and the five questions answered.

import { answers } from "../data/answers.js";
import { rate, span } from "../lib/format.js";
import { html } from "../lib/html.js";
import { grouped } from "../lib/words.js";
import { BackendLink, RouteLink } from "./parts.js";

/** @typedef {import("../data/store.js").State} State */

/** @param {{ app: any, state: State }} props */
export function Verdict({ app, state }) {
  const { snapshot, changes } = state.known;
  if (!snapshot) return html`<p class="waiting">Waiting for the gateway's first answer.</p>`;
  const { verdict } = snapshot;
  const failures = verdict.client_failures;
  return html`
    <section class="verdict level-${verdict.level}" id="verdict" aria-labelledby="headline" tabindex="-1">
      <div class="said">
        <h1 id="headline" aria-live="polite">${verdict.headline}</h1>
        <p class="sentence">${withNames(verdict.sentence)}</p>
      </div>
      <dl class="numbers">
        <div class=${failures > 0 ? "hurt" : ""}>
          <dd>${grouped(failures)}</dd><dt>client failures</dt></div>
        <div><dd>${rate(verdict.rps)}<small>/s</small></dd><dt>requests</dt></div>
        <div><dd>${span(verdict.p95_ms)}</dd><dt>p95</dt></div>
      </dl>
      <dl class="answers">
        ${answers(snapshot, changes, app.now()).map((it) => html`
          <div key=${it.question}>
            <dt>${it.question}</dt>
            ${it.lines.map((line) => html`<dd class=${line.tone ?? ""}>${lineOf(line)}</dd>`)}
          </div>`)}
      </dl>
    </section>`;
}

/**
 * A sentence of the gateway's, in which names stand in backticks.
 * @param {string} sentence
 */
const withNames = (sentence) => sentence.split("`").map((part, index) =>
  (index % 2 === 1 ? html`<code>${part}</code>` : part));

/** @param {import("../data/answers.js").Line} line */
function lineOf(line) {
  if (line.backend) return html`<${BackendLink} id=${line.backend} /> ${line.text}`;
  if (line.route) return html`<${RouteLink} name=${line.route} /> ${line.text}`;
  return line.text;
}
