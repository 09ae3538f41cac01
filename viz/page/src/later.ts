// SPDX-License-Identifier: Apache-2.0
//
// Work that waits: for the next frame, or for some time. All of it can be done at once, so that
// tests see what will be shown, however slow their machine is.
const waiting = new Set<() => void>();

function once(work: () => void): () => void {
  const it = () => {
    if (waiting.delete(it)) work();
  };
  waiting.add(it);
  return it;
}

export function atNextFrame(work: () => void): void {
  requestAnimationFrame(once(work));
}

/** Returns what cancels it. */
export function after(milliseconds: number, work: () => void): () => void {
  const it = once(work);
  const timer = window.setTimeout(it, milliseconds);
  return () => {
    waiting.delete(it);
    window.clearTimeout(timer);
  };
}

/** Does what waits, and what that leaves waiting; false if there was nothing. */
export function finishWaiting(): boolean {
  const found = waiting.size > 0;
  for (let turns = 0; waiting.size > 0; ++turns) {
    if (turns === 1000) throw new Error("what waits begins itself anew");
    for (const it of [...waiting]) it();
  }
  return found;
}
