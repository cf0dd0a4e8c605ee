// Numbers and times as people read them. Everything here is a pure function. Where a value is
// missing, an en dash stands for it.

export const NONE = "–";

/**
 * A span of time in at most two units: `118 ms`, `1.4 s`, `2 m 14 s`, `3 h 5 m`.
 * @param {number | null | undefined} ms
 */
export function span(ms) {
  if (ms == null || !Number.isFinite(ms)) return NONE;
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 10_000) return `${(Math.floor(ms / 100) / 10).toString()} s`;
  const seconds = Math.floor(ms / 1000);
  const [d, h, m, s] = [
    Math.floor(seconds / 86_400), Math.floor(seconds / 3600) % 24,
    Math.floor(seconds / 60) % 60, seconds % 60,
  ];
  const parts = [[d, "d"], [h, "h"], [m, "m"], [s, "s"]];
  const first = parts.findIndex(([count]) => Number(count) > 0);
  return parts.slice(first, first + 2).filter(([count]) => Number(count) > 0)
    .map(([count, unit]) => `${count} ${unit}`).join(" ");
}

/**
 * A span in whole seconds, for countdowns that change once per second.
 * @param {number} ms
 */
export const seconds = (ms) => (ms < 1000 ? "1 s" : span(Math.ceil(ms / 1000) * 1000));

/**
 * The time of day with seconds, in the reader's time zone.
 * @param {number | null | undefined} unixMs
 */
export function clock(unixMs) {
  if (unixMs == null) return NONE;
  const date = new Date(unixMs);
  const two = (/** @type {number} */ it) => String(it).padStart(2, "0");
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

/**
 * A moment as it is told at another: the time of day, with the date where that is another day's.
 * @param {number | null | undefined} unixMs
 * @param {number} nowMs
 */
export function moment(unixMs, nowMs) {
  if (unixMs == null) return NONE;
  const day = (/** @type {number} */ ms) => {
    const date = new Date(ms);
    const two = (/** @type {number} */ it) => String(it).padStart(2, "0");
    return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  };
  return day(unixMs) === day(nowMs) ? clock(unixMs) : `${day(unixMs)} ${clock(unixMs)}`;
}

/**
 * A share: `0 %`, `12 %`, `99.9 %`. It says 100 only when nothing is missing.
 * @param {number | null | undefined} percent
 */
export function share(percent) {
  if (percent == null || !Number.isFinite(percent)) return NONE;
  if (percent > 99 && percent < 100) return `${(Math.floor(percent * 10) / 10).toFixed(1)} %`;
  if (percent > 0 && percent < 1) return "< 1 %";
  return `${Math.round(percent)} %`;
}

/**
 * A rate per second: `0.4`, `38`.
 * @param {number | null | undefined} perSecond
 */
export function rate(perSecond) {
  if (perSecond == null || !Number.isFinite(perSecond)) return NONE;
  return perSecond > 0 && perSecond < 10 ? perSecond.toFixed(1) : String(Math.round(perSecond));
}

/**
 * The end of an id, which tells more than its beginning.
 * @param {string} id
 */
export const shortId = (id) => (id.length > 12 ? `…${id.slice(-6)}` : id);
