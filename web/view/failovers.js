// Failovers: requests that hopped, failed or were refused, newest first. A row opens the decision.

import { readCommand } from "../lib/cli.js";
import { clock, shortId, span } from "../lib/format.js";
import { hashOf } from "../lib/hash.js";
import { html, pure } from "../lib/html.js";
import { Panel, breakable, More } from "./parts.js";

/** @typedef {import("../data/store.js").State} State */
/** @typedef {import("../data/types.js").Decision} Decision */

const ROWS_MAX = 12;

/** @param {{ app: any, state: State }} props */
export function Failovers({ app, state }) {
  const { failovers } = state.known;
  const isOpen = state.expanded.failovers ?? false;
  const shown = isOpen ? failovers : failovers.slice(0, ROWS_MAX);
  const selected = state.place?.kind === "decision" ? state.place.id : "";
  return html`
    <${Panel} app=${app} name="failovers" title="Failovers"
      note="requests that hopped or failed"
      cli=${readCommand(app.origin, "api/decisions?notable=true&since=15m")}
      json=${() => failovers}>
      ${failovers.length === 0 && html`<p class="empty">
        No request has hopped in 15 min.
        ${!state.demo && html` <a href="?demo">The demo</a> shows what this looks like in an outage.`}
      </p>`}
      <ol class="failovers">${shown.map((it) => html`
        <${FailoverRow} key=${it.id} decision=${it} isSelected=${it.id === selected} />`)}
      </ol>
      <${More} app=${app} name="failovers" hidden=${failovers.length - shown.length}
        isOpen=${isOpen} what="requests" />
    </${Panel}>`;
}

/** @param {Decision} it */
export const endSign = (it) => {
  if (it.result === "ok") return { glyph: "✓", word: "answered", tone: "good" };
  if (it.result === "failed") return { glyph: "✗", word: "the client got an error", tone: "hurt" };
  return { glyph: "·", word: it.result.replaceAll("_", " "), tone: "quiet" };
};

const FailoverRow = pure(drawRow);

/** @param {{ decision: Decision, isSelected: boolean }} props */
function drawRow({ decision: it, isSelected }) {
  const sign = endSign(it);
  return html`
    <li class=${isSelected ? "selected" : ""}>
      <a class="row" href=${hashOf("decision", it.id)}>
        <time>${clock(it.at_unix_ms)}</time>
        <span class="req">${shortId(it.id)}</span>
        <span class="chain">${it.attempts.map((attempt, index) => html`
          ${index > 0 && html`<span class="arrow" aria-label="then">→</span> `}
          <span class="hop"><span class="id">${breakable(attempt.backend)}</span>${" "}
          <span class=${attempt.outcome === "success" ? "quiet" : "open"}>
            ${outcomeOf(attempt)}</span>${" "}
          <span class="quiet">${span(attempt.ms)}</span></span>${" "}`)}
          ${it.attempts.length === 0 && html`<span class="quiet">no attempt: ${it.end}</span>`}
        </span>
        <span class="end ${sign.tone}" title=${sign.word}>
          <span aria-hidden="true">${sign.glyph}</span><span class="unseen">${sign.word}</span></span>
      </a>
    </li>`;
}

/**
 * Status and what it means; a success says its status alone. A backend that could not even be asked
 * has no outcome, and its detail says why.
 * @param {import("../data/types.js").Attempt} it
 */
export function outcomeOf(it) {
  if (it.outcome == null) return it.detail || "not asked";
  const word = it.outcome.replaceAll("_", " ");
  if (it.outcome === "success") return it.status == null ? "answered" : String(it.status);
  return it.status == null ? word : `${it.status} ${word}`;
}
