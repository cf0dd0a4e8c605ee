// The drawer: one thing in full, beside the page. What the address names is shown in it.

import { backendCommand, decisionCommand, routeCommand } from "../lib/cli.js";
import { Component, html } from "../lib/html.js";
import { BackendStory } from "./backend_story.js";
import { DecisionStory } from "./decision_story.js";
import { RouteStory } from "./route_story.js";

/** @typedef {import("../data/store.js").State} State */

const COMMANDS = { backend: backendCommand, decision: decisionCommand, route: routeCommand };
const STORIES = { backend: BackendStory, decision: DecisionStory, route: RouteStory };

export class Drawer extends Component {
  /** @param {any} props */
  constructor(props) {
    super(props);
    /** @type {HTMLElement | null} */
    this.box = null;
    /** @type {Element | null} */
    this.opener = document.activeElement;
  }

  componentDidMount() {
    this.box?.focus();
  }

  componentWillUnmount() {
    if (this.opener instanceof HTMLElement) this.opener.focus({ preventScroll: true });
  }

  /** @param {{ app: any, state: State }} props */
  render({ app, state }) {
    const { place, story } = state;
    if (!place || place.kind === "time") return null;
    const Story = STORIES[place.kind];
    const cli = COMMANDS[place.kind](app.origin, place.id);
    return html`
      <aside class="drawer" role="dialog" aria-labelledby="drawer-title" tabindex="-1"
        ref=${(/** @type {any} */ box) => { this.box = box; }}>
        <header>
          <span class="note">${place.kind}</span>
          <span class="copies">
            <button type="button" onClick=${() => app.copy(cli, "command")} title=${cli}
              >copy as CLI</button>
            <button type="button" onClick=${() => app.copyJson(story?.value)}>JSON</button>
            <button type="button" onClick=${() => app.copy(location.href, "link")}>link</button>
          </span>
          <button type="button" class="close" onClick=${app.close} aria-label="Close">✕</button>
        </header>
        <h2 id="drawer-title" class="id">${place.id}</h2>
        ${story?.problem && html`<p class="problem" role="alert">${story.problem}</p>`}
        ${!story && html`<p class="quiet">Loading.</p>`}
        ${story?.value && html`<${Story} app=${app} state=${state} story=${story.value} />`}
      </aside>`;
  }
}
