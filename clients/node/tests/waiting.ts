/** Waiting for a condition, with a deadline. */
import { setTimeout as sleep } from "node:timers/promises";

const LOOK_MILLISECONDS = 10;

/** What `look` finds, once it finds something. */
export async function until<T>(seconds: number, look: () => Promise<T | undefined> | T | undefined): Promise<T> {
  const end = performance.now() + seconds * 1000;
  for (;;) {
    const found = await look();
    if (found !== undefined) {
      return found;
    }
    if (performance.now() > end) {
      throw new Error(`nothing came of it within ${seconds} s: ${look}`);
    }
    await sleep(LOOK_MILLISECONDS);
  }
}
