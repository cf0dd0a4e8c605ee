// What the page does: follows the source, reads the address, and answers buttons and keys.
//
// Views get this object as `app`. It changes nothing but the store; the store asks for a frame.

import { fold, withChange, withDecisions, withTimeline } from "./data/fold.js";
import { hashOf, placeOf } from "./lib/hash.js";
import { atMostEvery } from "./lib/schedule.js";
import { nextTheme } from "./lib/theme.js";
import { isTroubled } from "./lib/words.js";
import { PANELS } from "./view/app.js";

/** @typedef {import("./data/store.js").Store} Store */
/** @typedef {import("./data/store.js").State} State */
/** @typedef {import("./data/types.js").StreamEvent} StreamEvent */

/** Events after which a snapshot tells what the event itself does not. */
const CHANGING = new Set(["transition", "action", "reload", "moved", "gap"]);
const NOTICE_MS = 2500;
const SLOW_MS = 10_000;

export class Controller {
  /**
   * @param {Store} store
   * @param {any} source `LiveSource` or `DemoSource`
   */
  constructor(store, source) {
    this.store = store;
    this.source = source;
    this.demoSource = source.isDemo ? source : null;
    this.origin = location.origin;
    this.refresh = atMostEvery(1000, () => this.readSnapshot());
    this.refreshSlowly = atMostEvery(SLOW_MS, () => {
      this.readSnapshot();
      this.readTimeline();
    });
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.noticeTimer = undefined;
  }

  start() {
    addEventListener("hashchange", () => this.readAddress());
    addEventListener("keydown", (event) => this.key(event));
    this.readAddress();
    this.readLogin();
    this.source.open({
      event: (/** @type {StreamEvent} */ event) => this.heard(event),
      phase: (/** @type {State["phase"]} */ phase) => this.phase(phase),
    });
    this.tickSeconds();
  }

  now = () => this.store.now();

  set = (/** @type {Partial<State>} */ part) => this.store.set(part);

  /** @param {State["phase"]} phase */
  phase(phase) {
    if (phase === "live") this.store.state.heardAt = this.now();
    if (phase !== this.store.state.phase) this.set({ phase });
  }

  /** @param {StreamEvent} event */
  heard(event) {
    const before = this.store.state.known;
    const { at_unix_ms: at } = event.data ?? {};
    if ((event.name === "snapshot" || event.name === "tick") && at) this.store.heardTime(at);
    let known = fold(before, event);
    if (event.name === "snapshot") {
      const was = before.snapshot?.instance;
      if (was && was !== event.data.instance) {
        const text = "the gateway was restarted";
        const change = { at: event.data.started_unix_ms, kind: "restart", id: "", tone: "quiet" };
        known = withChange(known, { ...change, text });
      }
      this.readTimeline();
      if (!before.snapshot) this.readDecisions();
      if (!before.snapshot) this.readStory();
    }
    this.set({ known });
    if (CHANGING.has(event.name)) this.refresh();
    if (event.name === "gap") this.readDecisions();
    if (event.name === "transition") this.readTimeline();
    if (event.name === "tick") this.refreshSlowly();
  }

  readSnapshot() {
    this.quietly(async () => {
      const snapshot = await this.source.snapshot();
      this.store.heardTime(snapshot.at_unix_ms);
      this.set({ known: { ...this.store.state.known, snapshot } });
      if (this.store.state.place?.kind === "backend") this.readStory();
    });
  }

  readTimeline = atMostEvery(1000, () => this.quietly(async () => {
    const timeline = await this.source.timeline(this.store.state.spanMs);
    this.set({ known: withTimeline(this.store.state.known, timeline) });
  }));

  readDecisions() {
    this.quietly(async () => {
      const { decisions } = await this.source.decisions();
      this.set({ known: withDecisions(this.store.state.known, decisions) });
    });
  }

  readLogin() {
    this.quietly(async () => this.set({ login: await this.source.session() }));
  }

  /** @param {number} spanMs */
  setSpan = (spanMs) => {
    this.set({ spanMs });
    this.readTimeline();
  };

  /**
   * What fails here is asked for again by the next event; the stream tells of a lost gateway.
   * @param {() => Promise<void>} work
   */
  quietly(work) {
    work().catch(() => undefined);
  }

  readAddress() {
    const place = placeOf(location.hash, this.now());
    const { place: before, story } = this.store.state;
    const isSame = before?.kind === place?.kind && before?.id === place?.id;
    this.set({ place, story: isSame ? story : null });
    if (!isSame) this.readStory();
    if (place?.at && !isSame) this.panel("timeline");
  }

  async readStory() {
    const { place } = this.store.state;
    if (!place || place.kind === "time") return;
    const key = place.kind + place.id;
    let value = null;
    let problem = null;
    try {
      if (place.kind === "decision") value = await this.source.decision(place.id);
      else if (place.kind === "backend") value = await this.source.explain({ backend: place.id });
      else value = await this.source.explain({ model: place.id });
    } catch (error) {
      const said = error instanceof Error ? error.message : String(error);
      const kept = this.store.state.story;
      value = kept?.key === key ? kept.value : null;
      problem = value ? null : `The gateway has nothing under this name: ${said}`;
    }
    const now = this.store.state.place;
    if (now && now.kind + now.id === key) this.set({ story: { key, value, problem } });
  }

  close = () => {
    history.pushState(null, "", `${location.pathname}${location.search}`);
    this.readAddress();
  };

  /** @param {string} name */
  toggle = (name) => {
    const { expanded } = this.store.state;
    this.set({ expanded: { ...expanded, [name]: !expanded[name] } });
  };

  /** @param {State["dialog"]} dialog */
  dialog = (dialog) => this.set({ dialog });

  nextTheme = () => {
    nextTheme();
    this.set({});
  };

  /** @param {string} token */
  login = async (token) => {
    await this.source.login(token);
    const login = await this.source.session();
    const { phase } = this.store.state;
    this.set({ login, dialog: "" });
    if (phase === "login") location.reload();
  };

  logout = async () => {
    await this.source.logout();
    this.readLogin();
  };

  /**
   * @param {string} deed
   * @param {string} backend
   * @param {{ reason?: string, ttl?: string }} lease
   */
  act = async (deed, backend, lease) => {
    try {
      return await this.source.act(deed, backend, lease);
    } catch (error) {
      // A cookie that has ended shows the login again.
      this.readLogin();
      throw error;
    } finally {
      this.refresh();
    }
  };

  /** @param {unknown} value */
  copyJson = (value) => this.copy(JSON.stringify(value ?? null, null, 2), "JSON");

  /**
   * @param {string} text
   * @param {string} what
   */
  copy = async (text, what) => {
    try {
      await navigator.clipboard.writeText(text);
      this.notice(`Copied the ${what}.`);
    } catch {
      this.notice(`The browser does not allow copying. ${what === "command" ? text : ""}`);
    }
  };

  /** @param {string} notice */
  notice(notice) {
    clearTimeout(this.noticeTimer);
    this.set({ notice });
    this.noticeTimer = setTimeout(() => this.set({ notice: "" }), NOTICE_MS);
  }

  /** @param {Event} event */
  skip = (event) => {
    event.preventDefault();
    this.panel("verdict");
  };

  /** @param {string} name */
  panel(name) {
    requestAnimationFrame(() => {
      const panel = document.getElementById(name);
      panel?.scrollIntoView({ block: "start" });
      panel?.focus({ preventScroll: true });
    });
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const isTyping = event.target instanceof Element && event.target.closest("input, select, dialog");
    if (event.key === "Escape" && !this.store.state.dialog && this.store.state.place) this.close();
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    const panel = PANELS[Number(event.key) - 1];
    if (panel) this.panel(panel);
    else if (event.key === "?") this.dialog("help");
    else if (event.key === "t") this.nextTheme();
    else if (event.key === "/") {
      document.getElementById("filter")?.focus();
      event.preventDefault();
    }
  }

  /** @param {number} at */
  momentLink(at) {
    return hashOf("time", "", at);
  }

  /**
   * Countdowns move once per second, and only while there is one to show: an idle page with
   * healthy backends is drawn once in ten seconds.
   */
  tickSeconds() {
    const { known, phase, place } = this.store.state;
    const isCounting = phase === "lost" || place?.kind === "backend"
      || (known.snapshot?.backends.some(isTroubled) ?? false);
    const isDue = isCounting || this.now() - this.store.state.second >= 10_000;
    if (isDue && !document.hidden) this.set({ second: this.now() });
    setTimeout(() => this.tickSeconds(), 1000);
  }
}
