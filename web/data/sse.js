// A parser of server-sent events, fed with text as it arrives.
//
// The page reads the stream with `fetch` and not with `EventSource`, because an `EventSource` hides
// what the page needs: comments (the heartbeat that tells a quiet gateway from a dead one) and the
// status of a refusal.

/** @typedef {import("./types.js").StreamEvent} StreamEvent */

/** A line longer than this is no event of ours; the stream is given up. */
const LINE_MAX = 64 * 1024 * 1024;

export class SseParser {
  constructor() {
    this.rest = "";
    /** @type {string | null} the id of the latest event, to resume after */
    this.lastId = null;
    this.clear();
  }

  clear() {
    this.name = "message";
    /** @type {string[]} */
    this.data = [];
    /** @type {string | null} */
    this.id = null;
  }

  /**
   * The events that are complete with this text.
   * @param {string} text
   * @returns {StreamEvent[]}
   */
  push(text) {
    const lines = (this.rest + text).split("\n");
    this.rest = lines.pop() ?? "";
    if (this.rest.length > LINE_MAX) throw new Error("an event is too large");
    /** @type {StreamEvent[]} */
    const events = [];
    for (const line of lines) this.line(line.replace(/\r$/, ""), events);
    return events;
  }

  /**
   * @param {string} line
   * @param {StreamEvent[]} events
   */
  line(line, events) {
    if (line === "") {
      if (this.data.length > 0) {
        if (this.id != null) this.lastId = this.id;
        events.push({ name: this.name ?? "", data: JSON.parse(this.data.join("\n")), id: this.id });
      }
      this.clear();
      return;
    }
    const [, field = "", value = ""] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? [];
    if (field === "event") this.name = value;
    else if (field === "data") this.data.push(value);
    else if (field === "id") this.id = value;
  }
}
