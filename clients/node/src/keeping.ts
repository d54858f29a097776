/** Leases of what waits here to be handed out are kept, however slow the one is who takes it. */
import { LeaseLost } from "./errors.js";
import type { Lease } from "./lease.js";

/** For how long a lease is kept at a time, which is also what a node gives by default. */
const LEASE_SECONDS = 30;
/** When it is kept for the first time. The node's clock and this one may differ: its deadline is only a hint. */
const FIRST_SECONDS_MIN = 0.1;
const FIRST_SECONDS_MAX = 10;
/** When it is tried again after a failure. */
const AGAIN_SECONDS = 1;

export class Keeper {
  private readonly timers = new Map<Lease, NodeJS.Timeout>();

  /** Keep it from now on; `lost` is told if that cannot be done any more. */
  keep(lease: Lease, deadline: Date | undefined, lost: () => void): void {
    const left = deadline === undefined ? LEASE_SECONDS : (deadline.getTime() - Date.now()) / 1000;
    this.extendIn(Math.min(Math.max(left / 2, FIRST_SECONDS_MIN), FIRST_SECONDS_MAX), lease, lost);
  }

  /** Leave it to itself. */
  release(lease: Lease): void {
    clearTimeout(this.timers.get(lease));
    this.timers.delete(lease);
  }

  stop(): void {
    for (const lease of [...this.timers.keys()]) {
      this.release(lease);
    }
  }

  private extendIn(seconds: number, lease: Lease, lost: () => void): void {
    this.timers.set(
      lease,
      setTimeout(() => void this.extend(lease, lost), seconds * 1000),
    );
  }

  private async extend(lease: Lease, lost: () => void): Promise<void> {
    let next = LEASE_SECONDS / 2;
    try {
      await lease.extend(LEASE_SECONDS);
    } catch (error) {
      if (error instanceof LeaseLost) {
        this.release(lease);
        lost();
        return;
      }
      next = AGAIN_SECONDS;
    }
    if (this.timers.has(lease)) {
      this.extendIn(next, lease, lost);
    }
  }
}
