// The controls of the demo: that it is a recording, play and pause, and where in it we are.

import { html } from "../lib/html.js";

/** @typedef {import("../data/store.js").State} State */

/** @param {number} ms */
const minutes = (ms) =>
  `${Math.floor(ms / 60_000)}:${String(Math.floor(ms / 1000) % 60).padStart(2, "0")}`;

/** @param {{ app: any, state: State }} props */
export function DemoBar({ app, state }) {
  const demo = state.demo;
  if (!demo) return null;
  const { demoSource: source } = app;
  const at = source.offset();
  return html`
    <div class="demo" role="group" aria-label="Demo">
      <strong>Demo</strong>
      <button type="button" onClick=${source.toggle}>${demo.playing ? "❚❚ Pause" : "▶ Play"}</button>
      <input type="range" min="0" max=${demo.lasts} step="1000" value=${at}
        aria-label="Moment of the recording" aria-valuetext=${minutes(at)}
        onInput=${(/** @type {any} */ it) => source.seek(Number(it.target.value))} />
      <span class="number">${minutes(at)} / ${minutes(demo.lasts)}</span>
      <span class="quiet moments">${source.chapters.map((/** @type {any} */ it) => html`
        <button type="button" key=${it.at} onClick=${() => source.seek(it.at)}>${it.name}</button>`)}
      </span>
      <span class="quiet about">A recording of the simulator, played at ${source.speed}×. The
        requests are invented; the decisions are the gateway's own.</span>
    </div>`;
}
