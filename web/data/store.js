// Everything the page knows and shows, in one value; a change of it asks for a frame.
//
// `known` comes from the gateway and is changed by `fold` only. The rest is the page's own: the
// connection, the login, the place that the address names, and what was opened for reading.

import { NOTHING } from "./fold.js";

/** @typedef {import("./fold.js").Known} Known */
/** @typedef {import("../lib/hash.js").Place} Place */
/**
 * @typedef {{
 *   known: Known,
 *   phase: "connecting" | "live" | "lost" | "login",
 *   heardAt: number | null,
 *   login: import("./types.js").Login | null,
 *   place: Place | null,
 *   story: { key: string, value: any, problem: string | null } | null,
 *   spanMs: number,
 *   filter: string,
 *   expanded: Record<string, boolean>,
 *   dialog: "" | "login" | "help",
 *   notice: string,
 *   second: number,
 *   demo: { playing: boolean, at: number, lasts: number } | null,
 * }} State
 */

/** @type {State} */
const EMPTY = {
  known: NOTHING, phase: "connecting", heardAt: null, login: null, place: null, story: null,
  spanMs: 900_000, filter: "", expanded: {}, dialog: "", notice: "", second: 0, demo: null,
};

export class Store {
  /** @param {() => void} changed */
  constructor(changed) {
    this.state = EMPTY;
    this.changed = changed;
    this.skewMs = 0;
  }

  /** @param {Partial<State>} part */
  set(part) {
    this.state = { ...this.state, ...part };
    this.changed();
  }

  /**
   * Takes the gateway's clock over: times are shown by it, whatever the reader's clock says.
   * @param {number} unixMs
   */
  heardTime(unixMs) {
    this.skewMs = unixMs - Date.now();
  }

  /** The time by the gateway's clock. */
  now() {
    return this.state.demo ? this.state.demo.at : Date.now() + this.skewMs;
  }
}
