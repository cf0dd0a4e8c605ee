// Light, dark, or what the system says. The choice is kept in this browser only.

/** @typedef {"system" | "light" | "dark"} Theme */

const KEY = "tidegate-theme";
/** @type {Theme[]} */
const ORDER = ["system", "light", "dark"];

/** @returns {Theme} */
export function theme() {
  const kept = read();
  return ORDER.find((it) => it === kept) ?? "system";
}

/** Puts the chosen theme on the page. */
export function applyTheme() {
  const chosen = theme();
  if (chosen === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen;
}

/** Goes on to the next of the three. */
export function nextTheme() {
  const next = ORDER[(ORDER.indexOf(theme()) + 1) % ORDER.length] ?? "system";
  try {
    localStorage.setItem(KEY, next);
  } catch {
    // Without storage the choice lasts as long as the page.
  }
  applyTheme();
}

function read() {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}
