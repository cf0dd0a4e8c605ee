// Small parts that every panel uses: the sign of a state, links to things, panels, share bars.

import { hashOf } from "../lib/hash.js";
import { html } from "../lib/html.js";
import { share } from "../lib/format.js";

/** @typedef {import("../lib/words.js").Sign} Sign */

/**
 * Glyph, word and colour together.
 * @param {{ sign: Sign }} props
 */
export const StateSign = ({ sign }) => html`
  <span class="sign ${sign.tone}"><span class="glyph" aria-hidden="true">${sign.glyph}</span>${" "}
  ${sign.word}</span>`;

/**
 * The glyph alone; its word is read by screen readers.
 * @param {{ sign: Sign }} props
 */
export const StateGlyph = ({ sign }) => html`
  <span class="sign ${sign.tone}" title=${sign.word}><span class="glyph" aria-hidden="true">
  ${sign.glyph}</span><span class="unseen">${sign.word}</span></span>`;

/**
 * @param {{ id: string, at?: number | null }} props
 */
export const BackendLink = ({ id, at }) => html`
  <a class="id" href=${hashOf("backend", id, at ?? null)}>${breakable(id)}</a>`;

/** @param {{ name: string }} props */
export const RouteLink = ({ name }) => html`
  <a class="id" href=${hashOf("route", name)}>${breakable(name)}</a>`;

/**
 * A name that may be broken into lines after a slash.
 * @param {string} id
 */
export const breakable = (id) => id.replaceAll("/", "/\u200b");

/**
 * @param {{ percent: number | null, tone: string }} props
 */
export const ShareBar = ({ percent, tone }) => html`
  <span class="share">
    <svg class="bar" width="72" height="8" aria-hidden="true">
      <rect class="rail" width="72" height="8" />
      <rect class=${tone} width=${(72 * Math.min(100, percent ?? 0)) / 100} height="8" />
    </svg>
    <span class="number">${share(percent)}</span>
  </span>`;

/**
 * A panel: a heading, what can be copied, and the content.
 * @param {{
 *   app: any, name: string, title: string, note?: any, cli: string, json: () => unknown,
 *   children?: any,
 * }} props
 */
export const Panel = ({ app, name, title, note, cli, json, children }) => html`
  <section class="panel ${name}" id=${name} aria-labelledby="${name}-title" tabindex="-1">
    <header>
      <h2 id="${name}-title">${title}</h2>
      ${note != null && html`<span class="note">${note}</span>`}
      <span class="copies">
        <button type="button" onClick=${() => app.copy(cli, "command")}
          aria-label="copy as CLI: ${title}" title=${cli}>copy as CLI</button>
        <button type="button" onClick=${() => app.copyJson(json())}
          aria-label="JSON: ${title}">JSON</button>
      </span>
    </header>
    ${children}
  </section>`;

/**
 * The rest of a list that was cut.
 * @param {{ app: any, name: string, hidden: number, isOpen: boolean, what: string }} props
 */
export const More = ({ app, name, hidden, isOpen, what }) => (hidden <= 0 && !isOpen ? null : html`
  <button type="button" class="more" aria-expanded=${isOpen ? "true" : "false"}
    onClick=${() => app.toggle(name)}>
    ${isOpen ? "Show fewer" : `Show ${hidden} more ${one(hidden, what)}`}</button>`);

/**
 * The word for so many; all of them end with an s.
 * @param {number} count
 * @param {string} what
 */
const one = (count, what) => (count === 1 ? what.replace(/s$/, "") : what);
