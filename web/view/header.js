// The first line: what this is, whether it is live, and the few controls of the page itself.

import { html } from "../lib/html.js";
import { clock } from "../lib/format.js";
import { theme } from "../lib/theme.js";
import { grouped } from "../lib/words.js";

/** @typedef {import("../data/store.js").State} State */

const LIVE = {
  connecting: { glyph: "◌", word: "connecting", tone: "quiet" },
  live: { glyph: "●", word: "live", tone: "good" },
  lost: { glyph: "○", word: "reconnecting", tone: "open" },
  login: { glyph: "✕", word: "login needed", tone: "off" },
};

const THEMES = { system: "◐ theme: system", light: "○ theme: light", dark: "● theme: dark" };

/** @param {{ app: any, state: State }} props */
export function Header({ app, state }) {
  const { snapshot } = state.known;
  const live = state.demo ? { glyph: "▶", word: "demo", tone: "trial" } : LIVE[state.phase];
  return html`
    <header class="top">
      <a class="skip" href="#main" onClick=${app.skip}>Skip to the verdict</a>
      <strong class="mark">tidegate</strong>
      <span class="file">${snapshot?.config.file ?? ""}</span>
      <span class="sign ${live.tone}" data-phase=${state.phase}>
        <span class="glyph" aria-hidden="true">${live.glyph}</span> ${live.word}</span>
      <span class="spring"></span>
      <span class="controls">
        ${loginButton(app, state)}
        <button type="button" onClick=${app.nextTheme} aria-label="Theme: ${theme()}">
          ${THEMES[theme()]}</button>
        <button type="button" onClick=${() => app.dialog("help")} aria-label="Help">?</button>
      </span>
    </header>`;
}

/**
 * @param {any} app
 * @param {State} state
 */
function loginButton(app, state) {
  if (state.demo || !state.login?.token_configured) return null;
  if (state.login.logged_in) {
    return html`<button type="button" onClick=${app.logout}>Log out</button>`;
  }
  return html`<button type="button" onClick=${() => app.dialog("login")}>Log in</button>`;
}

/**
 * Records that the gateway cannot write, each with its reason: clients are not hurt, and whoever
 * relies on the records has to know.
 * @param {{ state: State }} props
 */
export function RecordsBanner({ state }) {
  const journal = state.known.snapshot?.journal;
  if (!journal) return null;
  const stores = Object.entries(STORES).map(([key, name]) =>
    ({ name, store: journal[/** @type {keyof typeof journal} */ (key)] }));
  return stores.filter(({ store }) => store?.status === "failed").map(({ name, store }) => html`
    <p class="banner" key=${name}>
      <strong>${name} does not work:</strong> ${store.why}.${" "}
      ${grouped(store.dropped)} records are lost; requests are served as usual.
    </p>`);
}

const STORES = { history: "The history file", audit: "The audit log",
  telemetry: "The export of telemetry" };

/**
 * Said at once when the page no longer follows the gateway; what is below it is old.
 * @param {{ state: State }} props
 */
export const StaleBanner = ({ state }) => (state.phase !== "lost" ? null : html`
  <p class="banner" role="alert">
    <strong>Stale since ${clock(state.heardAt)}.</strong>${" "}
    ${state.heardAt == null ? "The gateway does not answer." : "Everything below is old."}${" "}
    The page keeps trying to reconnect.
  </p>`);
