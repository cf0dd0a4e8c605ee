// Coalesces redraws to animation frames: however many events arrive, a frame is drawn once. A tab
// in the background gets no frames, so it draws nothing.

/**
 * @param {() => void} draw
 * @returns {() => void} asks for a frame
 */
export function coalesced(draw) {
  let isAsked = false;
  return () => {
    if (isAsked) return;
    isAsked = true;
    requestAnimationFrame(() => {
      isAsked = false;
      draw();
    });
  };
}

/**
 * Calls `work` soon, and at most once in every `ms`, however often it is asked for.
 * @param {number} ms
 * @param {() => void} work
 */
export function atMostEvery(ms, work) {
  /** @type {ReturnType<typeof setTimeout> | null} */
  let timer = null;
  let last = -Infinity;
  return () => {
    if (timer != null) return;
    const wait = Math.max(150, last + ms - performance.now());
    timer = setTimeout(() => {
      timer = null;
      last = performance.now();
      work();
    }, wait);
  };
}
