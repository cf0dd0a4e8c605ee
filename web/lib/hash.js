// Deep links. The part of the address after `#` names one thing, so that a message in an incident
// channel can point at it:
//
//   #/backend/anthropic/claude                       a backend
//   #/backend/anthropic/claude@2026-01-31T14:02:11Z  the same, and a moment on the timeline
//   #/route/fast    #/decision/req_1f    #/time/2026-01-31T14:02:11Z
//
// A moment may also be written as a time of day (`@14:02`), in the reader's zone: the latest such
// moment that has passed.

/** @typedef {"backend" | "route" | "decision" | "time"} Kind */
/** @typedef {{ kind: Kind, id: string, at: number | null }} Place */

const KINDS = new Set(["backend", "route", "decision", "time"]);

/**
 * What an address points at; `null`: nothing in particular.
 * @param {string} hash
 * @param {number} now
 * @returns {Place | null}
 */
export function placeOf(hash, now) {
  const [, kind = "", rest = ""] = /^#\/([a-z]+)\/(.+)$/.exec(hash) ?? [];
  if (!KINDS.has(kind)) return null;
  let text = rest;
  try {
    text = decodeURIComponent(rest);
  } catch {
    // A stray percent sign stands for itself.
  }
  if (kind === "time") {
    const at = momentOf(text, now);
    return at == null ? null : { kind: "time", id: "", at };
  }
  const mark = text.lastIndexOf("@");
  const at = mark > 0 ? momentOf(text.slice(mark + 1), now) : null;
  const id = at == null ? text : text.slice(0, mark);
  return { kind: /** @type {Kind} */ (kind), id, at };
}

/**
 * The address of a place.
 * @param {Kind} kind
 * @param {string} id
 * @param {number | null} [at]
 */
export function hashOf(kind, id, at = null) {
  const moment = at == null ? "" : new Date(at).toISOString().replace(/\.\d+Z$/, "Z");
  if (kind === "time") return `#/time/${moment}`;
  const name = encodeURIComponent(id).replaceAll("%2F", "/").replaceAll("%3A", ":");
  return `#/${kind}/${name}${moment && `@${moment}`}`;
}

/**
 * @param {string} text
 * @param {number} now
 * @returns {number | null}
 */
function momentOf(text, now) {
  const day = /^(\d{1,2}):(\d{2})(?::(\d{2}))?$/.exec(text);
  if (!day) {
    const at = /^\d{4}-\d{2}-\d{2}T/.test(text) ? Date.parse(text) : NaN;
    return Number.isNaN(at) ? null : at;
  }
  const date = new Date(now);
  date.setHours(Number(day[1]), Number(day[2]), Number(day[3] ?? 0), 0);
  return date.getTime() > now ? date.getTime() - 86_400_000 : date.getTime();
}
