/** Seconds, as users have them everywhere, and the durations and timers that they become. */
import { onAbort } from "./aborting.js";
import type { Duration } from "./generated/google/protobuf/duration.js";

const NANOS = 1_000_000_000;

export function durationOf(seconds: number): Duration {
  const nanos = Math.round(seconds * NANOS);
  return { seconds: Math.floor(nanos / NANOS), nanos: nanos % NANOS };
}

export function secondsOf(duration: Duration): number {
  return duration.seconds + duration.nanos / NANOS;
}

/** Wait. Throws the signal's reason as soon as it is aborted. */
export function pause(seconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason);
      return;
    }
    const timer = setTimeout(() => {
      takeBack();
      resolve();
    }, seconds * 1000);
    const takeBack = onAbort(signal, () => {
      clearTimeout(timer);
      reject(signal?.reason);
    });
  });
}
