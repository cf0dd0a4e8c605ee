// One decision in full: how it ended, every attempt in time, and every candidate of every choice
// with what stood against it.

import { clock, span } from "../lib/format.js";
import { html } from "../lib/html.js";
import { endSign, outcomeOf } from "./failovers.js";
import { BackendLink, RouteLink } from "./parts.js";

/** @typedef {import("../data/types.js").DecisionFull} DecisionFull */
/** @typedef {import("../data/types.js").Attempt} Attempt */
/** @typedef {import("../data/types.js").Candidate} Candidate */

/** @param {{ app: any, story: DecisionFull }} props */
export function DecisionStory({ story }) {
  const sign = endSign(story);
  return html`
    <p class="lead"><span class=${sign.tone}>${sign.glyph} ${sentence(story)}</span></p>
    <dl class="facts-list">
      ${fact("when", html`<time>${clock(story.at_unix_ms)}</time>, took ${span(story.took_ms)}`)}
      ${fact("route", story.kind === "llm" ? html`<${RouteLink} name=${story.route} />`
        : story.route)}
      ${fact("asked for", [story.model, story.method, story.tool, story.path].filter(Boolean)
        .join(" · "))}
      ${fact("caller", story.caller)}
      ${fact("session", story.session && `${story.session}${story.pin ? `, pin ${
        story.pin.replaceAll("_", " ")}` : ""}`)}
      ${fact("stream", story.stream ? "yes" : null)}
      ${fact("first content", story.first_content_ms != null && span(story.first_content_ms))}
      ${fact("tokens", story.tokens && `${story.tokens.input} in, ${story.tokens.output} out`
        + `${story.tokens.cached ? `, ${story.tokens.cached} cached` : ""}`)}
      ${fact("config", story.config_sha)}
    </dl>
    <h3>Attempts</h3>
    ${story.attempts.length === 0 ? html`<p class="quiet">None was made.</p>`
      : html`<${Attempts} attempts=${story.attempts} took=${story.took_ms} />`}
    ${(story.choices ?? []).map((choice, index) => html`
      <h3>${choice.chosen ? `Why attempt ${index + 1} went to ${choice.chosen}`
        : "Why there was no further attempt"}</h3>
      <${Candidates} candidates=${choice.candidates} />`)}
    ${(story.conversion ?? []).map((it) => html`
      <h3>Converted for attempt ${it.attempt + 1}: ${it.pair}</h3>
      <ul class="plain">${it.notes.map((note) => html`
        <li>${note.change} <span class="id">${note.field}</span>: ${note.why}</li>`)}</ul>`)}
    ${story.answer?.message && html`
      <h3>What the client was told</h3>
      <p>${story.answer.status} ${story.answer.type ?? ""}: ${story.answer.message}</p>`}`;
}

/**
 * @param {string} name
 * @param {any} value
 */
const fact = (name, value) => (value ? html`<div><dt>${name}</dt><dd>${value}</dd></div>` : null);

/** @param {DecisionFull} it */
function sentence(it) {
  const count = it.attempts.length;
  const tries = count === 1 ? "one attempt" : `${count} attempts`;
  if (it.result === "ok") return `Answered by ${it.answered_by ?? "a backend"} after ${tries}.`;
  const why = (it.cause ?? it.client_failure ?? it.end ?? it.result).replaceAll("_", " ");
  if (it.result === "failed") return `The client got ${it.status ?? "an error"} after ${tries}: ${why}.`;
  return `${it.result.replaceAll("_", " ")}: ${why}.`;
}

/** @param {{ attempts: Attempt[], took: number }} props */
function Attempts({ attempts, took }) {
  const whole = Math.max(1, took, ...attempts.map((it) => it.started_ms + it.ms));
  return html`
    <table class="rows attempts">
      <caption class="unseen">Attempts in order</caption>
      <thead><tr><th scope="col">#</th><th scope="col">backend</th><th scope="col">outcome</th>
        <th scope="col" class="num">took</th></tr></thead>
      <tbody>${attempts.map((it, index) => html`
        <tr key=${index}>
          <td class="num">${index + 1}</td>
          <th scope="row"><${BackendLink} id=${it.backend} />
            <span class="small quiet">${remarks(it)}</span></th>
          <td class=${it.outcome === "success" ? "good" : "open"}>${outcomeOf(it)}
            ${it.outcome != null && it.detail && html`<span class="small quiet">${it.detail}</span>`}</td>
          <td class="num">${span(it.ms)}
            <svg class="bar" width="96" height="6" aria-hidden="true">
              <rect class="rail" width="96" height="6" />
              <rect class=${it.outcome === "success" ? "good" : "open"} height="6"
                x=${(96 * it.started_ms) / whole} width=${Math.max(1.5, (96 * it.ms) / whole)} />
            </svg></td>
        </tr>`)}
      </tbody>
    </table>`;
}

/** @param {Attempt} it */
const remarks = (it) => [
  it.tier != null && `tier ${it.tier}`, it.key != null && `key ${it.key}`,
  it.by === "pin" && "pinned", it.by === "next_key" && "next key",
  it.trial && "trial", it.last_resort && "last resort",
  it.converted,
].filter(Boolean).join(", ");

const VERDICTS = /** @type {Record<string, string>} */ ({
  chosen: "chosen", held: "held back", skipped: "skipped", tried: "tried before", taken: "busy",
});

/** @param {{ candidates: Candidate[] }} props */
export const Candidates = ({ candidates }) => html`
  <table class="rows">
    <caption class="unseen">Candidates</caption>
    <thead><tr><th scope="col">candidate</th><th scope="col">verdict</th>
      <th scope="col">why</th></tr></thead>
    <tbody>${candidates.map((it) => html`
      <tr key=${it.backend}>
        <th scope="row"><${BackendLink} id=${it.backend} /></th>
        <td class=${it.verdict === "chosen" ? "good" : ""}>${VERDICTS[it.verdict] ?? it.verdict}</td>
        <td>tier ${it.tier}${(it.obstacles ?? []).map((one) => html`, ${one.phrase}
          ${one.until_unix_ms && html` until <time>${clock(one.until_unix_ms)}</time>`}`)}</td>
      </tr>`)}
    </tbody>
  </table>`;
