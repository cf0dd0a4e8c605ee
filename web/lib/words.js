// Glyphs and words of states. State is always shown as glyph, word and colour together, so that
// the page can be read in monochrome. The glyphs are those of the command line.

/** @typedef {import("../data/types.js").Backend} Backend */
/** @typedef {{ glyph: string, word: string, tone: Tone }} Sign */
/** @typedef {"good" | "trial" | "open" | "off" | "hurt" | "quiet"} Tone */

/** @type {Record<string, Sign>} */
const SIGNS = {
  closed: { glyph: "●", word: "closed", tone: "good" },
  usable: { glyph: "●", word: "usable", tone: "good" },
  half_open: { glyph: "◐", word: "half-open", tone: "trial" },
  open: { glyph: "○", word: "open", tone: "open" },
  window: { glyph: "◔", word: "limited", tone: "open" },
  excluded: { glyph: "○", word: "excluded", tone: "open" },
  drained: { glyph: "✕", word: "drained", tone: "off" },
  held: { glyph: "✕", word: "held open", tone: "off" },
  unconfigured: { glyph: "✕", word: "no key", tone: "off" },
  off: { glyph: "✕", word: "off", tone: "off" },
};

/** @type {Sign} */
const UNKNOWN = { glyph: "·", word: "unknown", tone: "quiet" };

/**
 * The sign of a state's word, as the gateway writes it.
 * @param {string | null | undefined} state
 * @returns {Sign}
 */
export const signOf = (state) => SIGNS[state ?? ""] ?? { ...UNKNOWN, word: state ?? "unknown" };

/**
 * The sign of a backend: what an operator did comes before what its breaker says, and a rank
 * above 0 at a closed breaker is a rate limit or an exclusion.
 * @param {Backend} backend
 * @returns {Sign}
 */
export function signOfBackend(backend) {
  if (backend.standing && backend.standing !== "active") return signOf(backend.standing);
  if (backend.state === "closed" && backend.rank >= 4) return signOf("excluded");
  if (backend.state === "closed" && !backend.healthy) return signOf("window");
  return signOf(backend.state);
}

/**
 * Whether something stands against a backend.
 * @param {Backend} backend
 */
export const isTroubled = (backend) =>
  !backend.healthy || backend.state !== "closed" || (backend.standing ?? "active") !== "active";

/**
 * `one thing`, `3 things`.
 * @param {number} count
 * @param {string} one
 * @param {string} [many]
 */
export const counted = (count, one, many = `${one}s`) =>
  `${grouped(count)} ${count === 1 ? one : many}`;

/**
 * A whole number with thin spaces between its thousands.
 * @param {number} number
 */
export const grouped = (number) =>
  String(Math.round(number)).replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f");
