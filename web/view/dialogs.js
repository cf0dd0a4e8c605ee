// The two dialogs: logging in with the admin token, and the keys of the page.

import { Component, html } from "../lib/html.js";

/** @typedef {import("../data/store.js").State} State */

/** @param {{ app: any, state: State }} props */
export function Dialogs({ app, state }) {
  if (state.dialog === "login") return html`<${LoginDialog} app=${app} />`;
  if (state.dialog === "help") return html`<${HelpDialog} app=${app} />`;
  return null;
}

class ModalDialog extends Component {
  /** @param {{ app: any, title: string, children?: any }} props */
  render({ app, title, children }) {
    const open = (/** @type {HTMLDialogElement | null} */ it) => {
      if (it && !it.open) it.showModal();
    };
    return html`
      <dialog ref=${open} aria-labelledby="dialog-title"
        onClose=${() => app.dialog("")}>
        <h2 id="dialog-title">${title}</h2>
        ${children}
      </dialog>`;
  }
}

class LoginDialog extends Component {
  /** @param {any} props */
  constructor(props) {
    super(props);
    this.state = { token: "", problem: "" };
  }

  /** @param {{ app: any }} props */
  render({ app }) {
    const { token, problem } = /** @type {any} */ (this.state);
    const submit = async (/** @type {Event} */ event) => {
      event.preventDefault();
      try {
        await app.login(token);
      } catch (error) {
        this.setState({ token: "", problem: error instanceof Error ? error.message : "failed" });
      }
    };
    return html`
      <${ModalDialog} app=${app} title="Log in">
        <form onSubmit=${submit}>
          <p>The admin token of this gateway's config. It is exchanged for a cookie that lasts 12 h
            and is not kept in the page.</p>
          <label>Admin token <input type="password" autocomplete="off" required
            value=${token} autofocus
            onInput=${(/** @type {any} */ it) => this.setState({ token: it.target.value })}
          /></label>
          ${problem && html`<p class="problem" role="alert">${problem}</p>`}
          <p><button type="submit" class="main">Log in</button>${" "}
            <button type="button" onClick=${() => app.dialog("")}>Cancel</button></p>
        </form>
      </${ModalDialog}>`;
  }
}

export const KEYS = [
  ["1 – 8", "go to a panel: verdict, routes, backends, timeline, failovers, MCP, callers, changes"],
  ["Tab, Enter", "go to a thing and open it"],
  ["← →", "move the cursor of the timeline; Enter makes a link to the moment"],
  ["Esc", "close the drawer"],
  ["/", "filter the backends"],
  ["t", "theme: system, light, dark"],
  ["?", "this help"],
];

/** @param {{ app: any }} props */
const HelpDialog = ({ app }) => html`
  <${ModalDialog} app=${app} title="Reading this page">
    <p>States: <span class="good">● closed</span> is in use,${" "}
      <span class="trial">◐ half-open</span> is being tried,${" "}
      <span class="open">○ open</span> is avoided, <span class="off">✕</span> is switched off by an
      operator or has no key. Red means that a client got an error; everything else was handled.</p>
    <dl class="keys">${KEYS.map(([key, what]) => html`
      <div key=${key}><dt><kbd>${key}</kbd></dt><dd>${what}</dd></div>`)}</dl>
    <p>Every thing has an address: copy it from the address bar, or with “link” in a drawer.</p>
    <p><button type="button" class="main" autofocus onClick=${() => app.dialog("")}>Close</button></p>
  </${ModalDialog}>`;
