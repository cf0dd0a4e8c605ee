// One lane of the timeline, drawn as SVG: what state a backend was in, and how much of the traffic
// it carried. The encoding is that of `tidegate sim`: filled while closed, hatched while open, half
// high while half-open, nothing while unused. The height of the filling is the share of the traffic.

import { html } from "../lib/html.js";
import { clock } from "../lib/format.js";
import { signOf } from "../lib/words.js";

/** @typedef {import("../data/types.js").Lane} Lane */
/** @typedef {import("../data/types.js").Timeline} Timeline */
/** @typedef {{ from: number, to: number, width: number }} Scale */

export const LANE_HEIGHT = 20;

/**
 * @param {number} at
 * @param {Scale} scale
 */
export const xOf = (at, { from, to, width }) =>
  Math.max(0, Math.min(width, ((at - from) / Math.max(1, to - from)) * width));

/**
 * @param {{ lane: Lane, totals: number[], timeline: Timeline, scale: Scale }} props
 */
export function LanePicture({ lane, totals, timeline, scale }) {
  const bars = barsOf(lane, totals, timeline, scale);
  return html`
    <svg class="lane" width=${scale.width} height=${LANE_HEIGHT} role="img"
      aria-label=${inWords(lane)}>
      <line class="ground" x1="0" x2=${scale.width} y1="19.5" y2="19.5" />
      ${lane.states.map((it) => band(it, scale))}
      <path class="good-fill" d=${bars.good} />
      <path class="open-fill" d=${bars.failed} />
    </svg>`;
}

/**
 * @param {import("../data/types.js").Interval} it
 * @param {Scale} scale
 */
function band(it, scale) {
  const x = xOf(it.from_unix_ms, scale);
  const width = Math.max(1.5, xOf(it.to_unix_ms, scale) - x);
  if (it.state === "closed" || it.state === "usable" || it.to_unix_ms < scale.from) return null;
  if (it.state === "half_open") {
    return html`<rect class="band half_open" x=${x} width=${width} y="10" height="10" />`;
  }
  return html`
    <g class="band ${it.state}">
      <rect x=${x} width=${width} y="0" height=${LANE_HEIGHT} />
      <rect class="hatch" x=${x} width=${width} y="0" height=${LANE_HEIGHT} />
    </g>`;
}

/**
 * Bars of a lane as two paths: what went well, and on the ground what failed.
 * @param {Lane} lane
 * @param {number[]} totals attempts of all lanes of its kind, by bucket
 * @param {Timeline} timeline
 * @param {Scale} scale
 */
function barsOf(lane, totals, timeline, scale) {
  let [good, failed] = ["", ""];
  lane.attempts.forEach((count, index) => {
    if (count === 0) return;
    const start = timeline.from_unix_ms + index * timeline.bucket_ms;
    if (start + timeline.bucket_ms <= scale.from) return;
    const x = xOf(start, scale);
    const width = Math.max(0.75, xOf(start + timeline.bucket_ms, scale) - x);
    const height = Math.max(2, (LANE_HEIGHT * count) / Math.max(1, totals[index] ?? 1));
    const bad = (height * Math.min(count, lane.failures[index] ?? 0)) / count;
    const top = LANE_HEIGHT - height;
    if (height > bad) good += rectangle(x, top, width, height - bad);
    if (bad > 0) failed += rectangle(x, LANE_HEIGHT - Math.max(2, bad), width, Math.max(2, bad));
  });
  return { good, failed };
}

/**
 * @param {number} x
 * @param {number} y
 * @param {number} w
 * @param {number} h
 */
const rectangle = (x, y, w, h) =>
  `M${x.toFixed(1)} ${y.toFixed(1)}h${w.toFixed(1)}v${h.toFixed(1)}h${(-w).toFixed(1)}z`;

/**
 * A row of counts, such as the requests that failed for their clients.
 * @param {{ counts: number[], timeline: Timeline, scale: Scale, tone: string, label: string }} props
 */
export function CountPicture({ counts, timeline, scale, tone, label }) {
  const most = Math.max(1, ...counts);
  let path = "";
  counts.forEach((count, index) => {
    if (count === 0) return;
    const start = timeline.from_unix_ms + index * timeline.bucket_ms;
    if (start + timeline.bucket_ms <= scale.from) return;
    const x = xOf(start, scale);
    const width = Math.max(0.75, xOf(start + timeline.bucket_ms, scale) - x);
    const height = Math.max(2, (LANE_HEIGHT * count) / most);
    path += rectangle(x, LANE_HEIGHT - height, width, height);
  });
  return html`
    <svg class="lane" width=${scale.width} height=${LANE_HEIGHT} role="img" aria-label=${label}>
      <line class="ground" x1="0" x2=${scale.width} y1="19.5" y2="19.5" />
      <path class="${tone}-fill" d=${path} />
    </svg>`;
}

/**
 * The lane in words.
 * @param {Lane} lane
 */
function inWords(lane) {
  const parts = lane.states.slice(-6).map((it) =>
    `${signOf(it.state).word} from ${clock(it.from_unix_ms)}${it.detail ? `, ${it.detail}` : ""}`);
  return `${lane.id}: ${parts.join("; ") || "no data"}`;
}
