// What an operator may do to a backend. Actions are few and leased: a drain and a hold carry a
// reason and an end, after which they undo themselves. They need a login.

import { actionCommand } from "../lib/cli.js";
import { moment } from "../lib/format.js";
import { Component, html } from "../lib/html.js";

/** @typedef {import("../data/store.js").State} State */
/** @typedef {import("../data/types.js").Backend} Backend */

const DEEDS = [
  { deed: "drain", name: "Drain", about: "No new requests; running ones finish.", leased: true },
  { deed: "hold", name: "Hold open", about: "Keeps the breaker open.", leased: true },
  { deed: "probe", name: "Probe now", about: "Asks the backend once.", leased: false },
  { deed: "reset", name: "Reset", about: "Closes the breaker and forgets failures.", leased: false },
  { deed: "resume", name: "Resume", about: "Ends a drain or a hold.", leased: false },
];

const TTLS = ["10m", "30m", "1h", "4h", "24h"];

export class Actions extends Component {
  /** @param {any} props */
  constructor(props) {
    super(props);
    this.state = { deed: "", reason: "", ttl: "10m", said: "", isBad: false, isBusy: false };
  }

  /** @param {{ app: any, state: State, backend: Backend }} props */
  render({ app, state, backend }) {
    return html`<h3>Actions</h3>${this.content(app, state, backend)}`;
  }

  /**
   * @param {any} app
   * @param {State} page
   * @param {Backend} backend
   */
  content(app, page, backend) {
    if (page.demo) return html`<p class="quiet">This is a recording: nothing can be changed.</p>`;
    if (!page.login?.token_configured) {
      return html`<p class="quiet">Read-only. Set <code>admin.token</code> in the config to allow
        actions.</p>`;
    }
    if (!page.login.logged_in) {
      return html`<p class="quiet">Read-only until you log in.${" "}
        <button type="button" onClick=${() => app.dialog("login")}>Log in</button></p>`;
    }
    const { deed, said, isBad } = /** @type {any} */ (this.state);
    const chosen = DEEDS.find((it) => it.deed === deed);
    const hasLease = backend.standing === "drained" || backend.standing === "held";
    return html`
      ${backend.action && html`<p>At work: ${backend.action.deed}
        ${backend.action.reason && ` (${backend.action.reason})`}
        ${backend.action.until_unix_ms
          && ` until ${moment(backend.action.until_unix_ms, app.now())}`}.</p>`}
      <p class="deeds">${DEEDS.filter((it) => it.deed !== "resume" || hasLease).map((it) => html`
        <button type="button" key=${it.deed} aria-pressed=${it.deed === deed ? "true" : "false"}
          onClick=${() => this.setState({ deed: it.deed === deed ? "" : it.deed, said: "" })}
          >${it.name}</button>`)}</p>
      ${chosen && this.form(app, backend, chosen)}
      ${said && html`<p role="status" class=${isBad ? "problem" : "good"}>${said}</p>`}`;
  }

  /**
   * @param {any} app
   * @param {Backend} backend
   * @param {(typeof DEEDS)[number]} chosen
   */
  form(app, backend, chosen) {
    const { reason, ttl, isBusy } = /** @type {any} */ (this.state);
    const lease = { ...(reason && { reason }), ...(chosen.leased && { ttl }) };
    const cli = actionCommand(app.origin, chosen.deed, backend.id, lease);
    return html`
      <form class="deed" onSubmit=${(/** @type {Event} */ it) => {
        it.preventDefault();
        this.act(app, backend, chosen, lease);
      }}>
        <p>${chosen.about}</p>
        <label>Reason <input type="text" value=${reason} maxlength="200"
          placeholder="shown to everybody who looks"
          onInput=${(/** @type {any} */ it) => this.setState({ reason: it.target.value })} /></label>
        ${chosen.leased && html`<label>Ends after <select
          onChange=${(/** @type {any} */ it) => this.setState({ ttl: it.target.value })}>
          ${TTLS.map((it) => html`<option key=${it} selected=${it === ttl}>${it}</option>`)}
        </select></label>`}
        <p><button type="submit" class="main" disabled=${isBusy}>${chosen.name}${" "}
          ${backend.id}</button>${" "}
          <button type="button" onClick=${() => app.copy(cli, "command")} title=${cli}
            >copy as CLI</button></p>
      </form>`;
  }

  /**
   * @param {any} app
   * @param {Backend} backend
   * @param {(typeof DEEDS)[number]} chosen
   * @param {{ reason?: string, ttl?: string }} lease
   */
  async act(app, backend, chosen, lease) {
    this.setState({ isBusy: true, said: "" });
    try {
      const done = await app.act(chosen.deed, backend.id, lease);
      const until = done.until_unix_ms ? ` until ${moment(done.until_unix_ms, app.now())}` : "";
      const result = done.result ? `: ${done.result}` : "";
      this.setState({
        isBusy: false, isBad: false, deed: "", reason: "",
        said: `Done: ${chosen.deed}${until}${result}.`,
      });
    } catch (error) {
      const said = error instanceof Error ? error.message : String(error);
      this.setState({ isBusy: false, isBad: true, said: `Not done: ${said}` });
    }
  }
}
