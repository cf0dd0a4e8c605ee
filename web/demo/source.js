// The demo as the source of the page: it plays a recording of the simulator through the same
// events and answers that a gateway gives. `?demo&at=190s` begins at a moment, `&pause` stands
// still there, `&speed=1` plays in real time.

import { NOTHING } from "../data/fold.js";
import { snapshotAt } from "./snapshot.js";
import { timelineAt } from "./timeline.js";
import { BASE, decisionsOf, transitionsOf } from "./transitions.js";

/** @typedef {import("../data/store.js").Store} Store */

const STEP_MS = 250;

export class DemoSource {
  /**
   * @param {Store} store
   * @param {URLSearchParams} query
   */
  static async load(store, query) {
    const answer = await fetch(new URL("recording.json", import.meta.url));
    return new DemoSource(store, await answer.json(), query);
  }

  /**
   * @param {Store} store
   * @param {any} recording
   * @param {URLSearchParams} query
   */
  constructor(store, recording, query) {
    this.isDemo = true;
    this.store = store;
    this.recording = recording;
    this.transitions = transitionsOf(recording);
    this.decisionList = decisionsOf(recording);
    this.speed = Number(query.get("speed") ?? 4) || 4;
    this.at = (Number.parseFloat(query.get("at") ?? "90") || 0) * 1000;
    this.told = -1;
    this.chapters = [
      { at: 90_000, name: "healthy" }, { at: 190_000, name: "a provider is down" },
      { at: 340_000, name: "recovered" }, { at: 404_000, name: "an MCP server crashed" },
    ];
    this.show(!query.has("pause"));
  }

  /** @param {any} listener */
  open(listener) {
    this.listener = listener;
    listener.phase("live");
    this.tell();
    setInterval(() => this.step(), STEP_MS);
  }

  offset = () => this.at;

  /** @param {boolean} playing */
  show(playing) {
    this.store.set({ demo: { playing, at: BASE + this.at, lasts: this.recording.lasts_ms } });
  }

  get isPlaying() {
    return this.store.state.demo?.playing ?? false;
  }

  toggle = () => {
    if (!this.isPlaying && this.at >= this.recording.lasts_ms) this.seek(0);
    this.show(!this.isPlaying);
  };

  /** @param {number} at */
  seek = (at) => {
    this.at = at;
    this.told = -1;
    this.store.set({ known: NOTHING });
    this.show(this.isPlaying);
    this.tell();
  };

  step() {
    if (!this.isPlaying || document.hidden) return;
    this.at = Math.min(this.recording.lasts_ms, this.at + STEP_MS * this.speed);
    this.show(this.at < this.recording.lasts_ms);
    this.tell();
  }

  /** Tells the page what happened since it was last told. */
  tell() {
    const { event } = this.listener ?? {};
    if (!event) return;
    const isDue = (/** @type {{ at_unix_ms: number }} */ it) =>
      it.at_unix_ms > BASE + this.told && it.at_unix_ms <= BASE + this.at;
    const isLive = this.told >= 0;
    event({ name: "snapshot", data: this.now(), id: null });
    if (isLive) {
      for (const data of this.transitions.filter(isDue)) {
        event({ name: "transition", data, id: null });
      }
      // A transition is applied to the snapshot before it; this one includes it.
      if (this.transitions.some(isDue)) event({ name: "snapshot", data: this.now(), id: null });
    }
    for (const data of this.decisionList.filter(isDue)) event({ name: "decision", data, id: null });
    this.told = this.at;
  }

  now() {
    return snapshotAt(this.recording, this.transitions, this.at);
  }

  async snapshot() {
    return this.now();
  }

  /** @param {number} spanMs */
  async timeline(spanMs) {
    return timelineAt(this.recording, this.transitions, this.decisionList, this.at, spanMs);
  }

  async decisions() {
    return { decisions: this.decisionList.filter((it) => it.at_unix_ms <= BASE + this.at).reverse() };
  }

  /** @param {string} id */
  async decision(id) {
    const found = this.decisionList.find((it) => it.id === id);
    if (!found) throw new Error("it is not in the recording");
    return {
      ...found, config_sha: null, plan: null, released: null, conversion: null, answer: null,
      choices: found.kind === "llm" ? this.choices(found) : null,
    };
  }

  /**
   * Why each attempt went where it went, read from the states at that moment.
   * @param {import("../data/types.js").Decision} decision
   */
  choices(decision) {
    const began = decision.at_unix_ms - decision.took_ms;
    return decision.attempts.map((attempt, index) => {
      const snapshot = snapshotAt(this.recording, this.transitions,
        began + attempt.started_ms - BASE);
      const tried = decision.attempts.slice(0, index).map((it) => it.backend);
      return { by: null, pin: null, chosen: attempt.backend,
        candidates: this.candidates(snapshot, attempt.backend, tried) };
    });
  }

  /**
   * @param {import("../data/types.js").Snapshot} snapshot
   * @param {string | undefined} chosen
   * @param {string[]} tried
   */
  candidates(snapshot, chosen, tried) {
    return this.recording.backends.map((/** @type {any} */ it) => {
      const backend = snapshot.backends.find((one) => one.id === it.id);
      const isOpen = backend?.state === "open";
      const verdict = it.id === chosen ? "chosen" : tried.includes(it.id) ? "tried"
        : isOpen ? "skipped" : "held";
      const obstacles = verdict === "skipped" ? [{ kind: "breaker", reason: "open",
        phrase: "has an open breaker", until_unix_ms: backend?.re_entry_unix_ms ?? null }] : [];
      return { backend: it.id, tier: it.tier, verdict, state: backend?.state ?? null,
        in_flight: null, obstacles };
    });
  }

  /** @param {{ backend?: string, model?: string }} question */
  async explain({ backend: id, model }) {
    const snapshot = this.now();
    if (model) {
      if (!snapshot.routes.some((it) => it.name === model)) throw new Error("no such route");
      const [chosen] = snapshot.routes[0]?.resolves_to ?? [];
      return { explanation: { candidates: this.candidates(snapshot, chosen, []) } };
    }
    const backend = snapshot.backends.find((it) => it.id === id);
    if (!backend) throw new Error("it is not in the recording");
    const isPast = (/** @type {{ at_unix_ms: number }} */ it) => it.at_unix_ms <= BASE + this.at;
    return {
      backend, sentence: null, actions: [],
      transitions: this.transitions.filter((it) => it.backend === id && isPast(it)).reverse(),
      recent: this.decisionList
        .filter((it) => isPast(it) && it.attempts.some((one) => one.backend === id))
        .slice(-10).reverse(),
    };
  }

  async session() {
    return { logged_in: false, token_configured: false, read_only: true };
  }
}
