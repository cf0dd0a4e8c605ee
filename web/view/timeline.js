// The timeline: one lane per backend over one axis, marks for reloads and actions, and a cursor.
//
// The cursor follows the pointer; arrow keys move it as well. A click, or Enter, puts the moment
// into the address, so that it can be passed on. What happened at the cursor stands below in words.

import { readCommand } from "../lib/cli.js";
import { clock } from "../lib/format.js";
import { hashOf } from "../lib/hash.js";
import { Component, html } from "../lib/html.js";
import { grouped, signOf } from "../lib/words.js";
import { CountPicture, LanePicture, xOf } from "./lane.js";
import { BackendLink, More, Panel } from "./parts.js";

/** @typedef {import("../data/types.js").Timeline} Timelines */
/** @typedef {import("../data/store.js").State} State */

const LANES_MAX = 12;
const LANES_ALL = 400;
/** @type {[number, string][]} */
const SPANS = [[900_000, "15 m"], [300_000, "5 m"], [60_000, "1 m"]];

export class Timeline extends Component {
  /** @param {any} props */
  constructor(props) {
    super(props);
    this.state = { width: 0, hover: null };
    /** @type {HTMLElement | null} */
    this.field = null;
    /** @type {ResizeObserver | null} */
    this.observer = null;
  }

  /** @param {HTMLElement | null} field */
  hold = (field) => {
    if (field === this.field) return;
    this.observer?.disconnect();
    this.field = field;
    if (!field) return;
    this.observer = new ResizeObserver(() => this.measure());
    this.observer.observe(field);
    this.measure();
  };

  measure() {
    const width = Math.floor(this.field?.clientWidth ?? 0);
    if (width !== this.state.width) this.setState({ width });
  }

  componentWillUnmount() {
    this.observer?.disconnect();
  }

  /** @param {{ app: any, state: State }} props */
  render({ app, state }) {
    const { timeline } = state.known;
    const lanes = timeline ? chosenLanes(timeline, state) : { shown: [], hidden: 0 };
    return html`
      <${Panel} app=${app} name="timeline" title="Timeline"
        note=${timeline ? `${clock(timeline.from_unix_ms)} – ${clock(timeline.to_unix_ms)}` : ""}
        cli=${readCommand(app.origin, "api/timeline")} json=${() => timeline}>
        <div class="spans" role="group" aria-label="Span of the timeline">
          ${SPANS.map(([ms, word]) => html`<button type="button" key=${ms}
            aria-pressed=${state.spanMs === ms ? "true" : "false"}
            onClick=${() => app.setSpan(ms)}>${word}</button>`)}
          <${Legend} />
        </div>
        ${timeline && this.picture(app, state, timeline, lanes.shown)}
        <${More} app=${app} name="timeline" hidden=${lanes.hidden}
          isOpen=${state.expanded.timeline ?? false} what="lanes, all closed" />
      </${Panel}>`;
  }

  /**
   * @param {any} app
   * @param {State} state
   * @param {Timelines} timeline
   * @param {import("../data/types.js").Lane[]} lanes
   */
  picture(app, state, timeline, lanes) {
    const { width, hover } = /** @type {any} */ (this.state);
    const scale = { from: timeline.to_unix_ms - state.spanMs, to: timeline.to_unix_ms, width };
    scale.from = Math.max(scale.from, timeline.from_unix_ms);
    const cursor = hover ?? state.place?.at ?? null;
    const totals = { target: sums(timeline, false), server: sums(timeline, true) };
    const failures = timeline.client_failures.reduce((sum, it) => sum + it, 0);
    const requests = timeline.requests.reduce((sum, it) => sum + it, 0);
    const selected = state.place?.kind === "backend" ? state.place.id : "";
    const draw = width > 0;
    return html`
      <div class="lanes">
        <div class="scrubber" role="slider" tabindex="0" aria-label="Moment on the timeline"
          aria-valuemin=${scale.from} aria-valuemax=${scale.to} aria-valuenow=${cursor ?? scale.to}
          aria-valuetext=${cursor ? clock(cursor) : "now"}
          onPointerMove=${(/** @type {any} */ it) => this.point(it, scale)}
          onPointerLeave=${() => this.setState({ hover: null })}
          onClick=${() => this.choose()}
          onKeyDown=${(/** @type {any} */ it) => this.key(it, scale, timeline, state)}></div>
        ${lanes.map((lane, index) => html`
          <div class="lane-row ${lane.id === selected ? "selected" : ""}" key=${lane.id}>
            <span class="name"><${BackendLink} id=${lane.id} /></span>
            <span class="track" ref=${index === 0 ? this.hold : undefined}>
              ${draw && html`<${LanePicture} lane=${lane} timeline=${timeline} scale=${scale}
                totals=${lane.kind === "server" ? totals.server : totals.target} />`}</span>
          </div>`)}
        <div class="lane-row count" key="(requests)">
          <span class="name">requests <span class="number">${grouped(requests)}</span></span>
          <span class="track">${draw && html`<${CountPicture} counts=${timeline.requests}
            timeline=${timeline} scale=${scale} tone="quiet" label="${requests} requests" />`}</span>
        </div>
        <div class="lane-row count ${failures > 0 ? "hurt" : ""}" key="(failures)">
          <span class="name">client failures <span class="number">${grouped(failures)}</span></span>
          <span class="track">${draw && html`<${CountPicture} counts=${timeline.client_failures}
            timeline=${timeline} scale=${scale} tone="hurt"
            label="${failures} client failures" />`}</span>
        </div>
        <div class="lane-row axis" key="(axis)"><span class="name"></span>
          <span class="track">${draw && html`<${Axis} scale=${scale} marks=${timeline.marks}
            cursor=${cursor} height=${(lanes.length + 2) * 24} />`}</span></div>
      </div>
      <${Readout} at=${cursor} isPinned=${hover == null} state=${state} timeline=${timeline} />`;
  }

  /**
   * @param {PointerEvent} event
   * @param {{ from: number, to: number }} scale
   */
  point(event, scale) {
    const box = this.field?.getBoundingClientRect();
    if (!box || box.width === 0) return;
    const part = (event.clientX - box.left) / box.width;
    const isInside = part >= 0 && part <= 1;
    this.setState({ hover: isInside ? scale.from + part * (scale.to - scale.from) : null });
  }

  choose() {
    const { hover } = /** @type {any} */ (this.state);
    if (hover != null) location.hash = hashOf("time", "", hover);
  }

  /**
   * @param {KeyboardEvent} event
   * @param {{ from: number, to: number }} scale
   * @param {Timelines} timeline
   * @param {State} state
   */
  key(event, scale, timeline, state) {
    const at = /** @type {any} */ (this.state).hover ?? state.place?.at ?? scale.to;
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (step) {
      const next = at + step * timeline.bucket_ms;
      this.setState({ hover: Math.max(scale.from, Math.min(scale.to, next)) });
      event.preventDefault();
    } else if (event.key === "Enter") {
      location.hash = hashOf("time", "", at);
    }
  }
}

/**
 * Every lane while they are few; otherwise those in which something happened.
 * @param {Timelines} timeline
 * @param {State} state
 */
function chosenLanes(timeline, state) {
  const isEventful = (/** @type {import("../data/types.js").Lane} */ it) =>
    it.states.some((one) => one.state !== "closed" && one.state !== "usable");
  const lanes = timeline.lanes.filter((it) => it.kind !== "endpoint" || isEventful(it));
  if (lanes.length <= LANES_MAX) return { shown: lanes, hidden: 0 };
  if (state.expanded.timeline) return { shown: lanes.slice(0, LANES_ALL), hidden: 0 };
  const ordered = [...lanes.filter(isEventful), ...lanes.filter((it) => !isEventful(it))];
  return { shown: ordered.slice(0, LANES_MAX), hidden: lanes.length - LANES_MAX };
}

/**
 * Attempts of all targets, or of all MCP servers, by bucket.
 * @param {Timelines} timeline
 * @param {boolean} isServer
 */
function sums(timeline, isServer) {
  /** @type {number[]} */
  const sum = timeline.requests.map(() => 0);
  for (const lane of timeline.lanes) {
    if (lane.kind === "endpoint" || (lane.kind === "server") !== isServer) continue;
    lane.attempts.forEach((it, index) => { sum[index] = (sum[index] ?? 0) + it; });
  }
  return sum;
}

const Legend = () => html`
  <span class="legend" aria-hidden="true">
    <span><i class="key good-key"></i> closed, height = share</span>
    <span><i class="key failing-key"></i> failing</span>
    <span><i class="key open-key"></i> open</span>
    <span><i class="key trial-key"></i> half-open</span>
  </span>`;

/** Steps of the axis, the first that leaves room for the labels is taken. */
const STEPS_MS = [10_000, 30_000, 60_000, 120_000, 300_000];
const LABEL_WIDTH = 84;

/**
 * @param {{
 *   scale: { from: number, to: number, width: number }, cursor: number | null, height: number,
 *   marks: import("../data/types.js").Mark[],
 * }} props
 */
function Axis({ scale, marks, cursor, height }) {
  const fits = (/** @type {number} */ step) =>
    (scale.width * step) / Math.max(1, scale.to - scale.from) >= LABEL_WIDTH;
  const step = STEPS_MS.find(fits) ?? 300_000;
  const ticks = [];
  for (let at = Math.ceil(scale.from / step) * step; at <= scale.to; at += step) ticks.push(at);
  return html`
    <svg class="axis" width=${scale.width} height=${height + 20} aria-hidden="true">
      ${ticks.map((at) => {
        const x = xOf(at, scale);
        const anchor = x < 24 ? "start" : x > scale.width - 24 ? "end" : "middle";
        return html`<line class="tick" x1=${x} x2=${x} y1=${height} y2=${height + 4} />
          <text x=${x} y=${height + 16} text-anchor=${anchor}>${clock(at)}</text>`;
      })}
      ${marks.filter((it) => it.at_unix_ms >= scale.from).map((it) => html`
        <line class="mark ${it.kind}" x1=${xOf(it.at_unix_ms, scale)}
          x2=${xOf(it.at_unix_ms, scale)} y1="0" y2=${height} />`)}
      ${cursor != null && cursor >= scale.from && cursor <= scale.to && html`
        <line class="cursor" x1=${xOf(cursor, scale)} x2=${xOf(cursor, scale)} y1="0"
          y2=${height} />`}
    </svg>`;
}

/**
 * What was the case at a moment, in words.
 * @param {{ at: number | null, isPinned: boolean, state: State, timeline: Timelines }} props
 */
function Readout({ at, isPinned, state, timeline }) {
  if (at == null) {
    return html`<p class="readout quiet">Point at a moment to read it; a click makes a link to it.</p>`;
  }
  const index = Math.floor((at - timeline.from_unix_ms) / timeline.bucket_ms);
  const lanes = timeline.lanes.flatMap((lane) => {
    const it = lane.states.find((one) => one.from_unix_ms <= at && at < one.to_unix_ms);
    return it && it.state !== "closed" && it.state !== "usable" ? [{ lane, it }] : [];
  });
  const near = state.known.changes.filter((it) => Math.abs(it.at - at) <= timeline.bucket_ms);
  const failed = timeline.client_failures[index] ?? 0;
  return html`
    <div class="readout" aria-live="off">
      <p><strong><time>${clock(at)}</time></strong>
        ${isPinned && html` <a href="#/">clear</a>`}${" · "}
        ${grouped(timeline.requests[index] ?? 0)} requests,${" "}
        ${grouped(timeline.hops[index] ?? 0)} hops,${" "}
        <span class=${failed > 0 ? "hurt" : ""}>${grouped(failed)} client failures</span>
        ${` in ${timeline.bucket_ms / 1000} s`}
        ${lanes.length === 0 && " · every backend was in use"}</p>
      ${lanes.slice(0, 4).map(({ lane, it }) => html`<p key=${lane.id}>
        <span class=${signOf(it.state).tone}>${signOf(it.state).glyph}</span>${" "}
        <${BackendLink} id=${lane.id} /> ${signOf(it.state).word} since ${clock(it.from_unix_ms)}
        ${it.detail && `: ${it.detail}`}</p>`)}
      ${near.slice(0, 4).map((it) => html`<p key=${`${it.at}${it.id}${it.kind}`}>
        <time>${clock(it.at)}</time> ${it.id && html`<${BackendLink} id=${it.id} /> `}
        ${it.text}</p>`)}
    </div>`;
}
