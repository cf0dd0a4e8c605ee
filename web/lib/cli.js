// What "copy as CLI" copies: for every part of the page the command that shows or does the same.
// All commands stand in this file; a test runs each of them against a gateway.

/** @param {string} text */
const quoted = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

/**
 * @param {string} origin
 * @param {string} path
 */
export const readCommand = (origin, path) => `curl -s ${quoted(`${origin}/${path}`)}`;

/** @param {string} origin */
export const snapshotCommand = (origin) => readCommand(origin, "api/snapshot");

/**
 * @param {string} origin
 * @param {string} id
 */
export const decisionCommand = (origin, id) =>
  readCommand(origin, `api/decisions/${encodeURIComponent(id)}`);

/**
 * The latest requests that met a backend.
 * @param {string} origin
 * @param {string} id
 */
export const backendCommand = (origin, id) =>
  readCommand(origin, `api/decisions?backend=${encodeURIComponent(id)}&limit=10`);

const JSON_HEADER = "-H 'content-type: application/json'";

/**
 * Where the next request of a route would go.
 * @param {string} origin
 * @param {string} route
 */
export const routeCommand = (origin, route) =>
  `curl -s ${quoted(`${origin}/api/explain`)} ${JSON_HEADER} `
  + `-d ${quoted(JSON.stringify({ model: route }))}`;

/**
 * The token is left to the shell: a command that is pasted into a channel must not hold it.
 * @param {string} origin
 * @param {string} deed
 * @param {string} backend
 * @param {{ reason?: string, ttl?: string }} lease
 */
export const actionCommand = (origin, deed, backend, lease) =>
  `curl -s ${quoted(`${origin}/api/backends/${encodeURIComponent(backend)}/${deed}`)} `
  + `-H "authorization: Bearer $TIDEGATE_ADMIN_TOKEN" ${JSON_HEADER} `
  + `-d ${quoted(JSON.stringify(lease))}`;
