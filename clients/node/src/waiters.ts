/** Those who wait until something has changed, to look again. */
export class Waiters {
  private waiting: (() => void)[] = [];

  wait(): Promise<void> {
    return new Promise((resolve) => this.waiting.push(resolve));
  }

  wake(): void {
    const waiting = this.waiting;
    if (waiting.length > 0) {
      this.waiting = [];
      for (const resolve of waiting) {
        resolve();
      }
    }
  }
}
