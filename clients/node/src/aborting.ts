/**
 * What is to be done when a signal is aborted. One listener a signal, however many calls share it: Node.js takes more
 * of them for a leak, and warns.
 */
const WAITING = new WeakMap<AbortSignal, Set<() => void>>();

/** Returns how to take it back. A signal that is aborted already has to be looked at by the caller. */
export function onAbort(signal: AbortSignal | undefined, action: () => void): () => void {
  if (signal === undefined) {
    return nothing;
  }
  const actions = WAITING.get(signal) ?? listen(signal);
  actions.add(action);
  return () => actions.delete(action);
}

function listen(signal: AbortSignal): Set<() => void> {
  const actions = new Set<() => void>();
  WAITING.set(signal, actions);
  signal.addEventListener(
    "abort",
    () => {
      for (const action of actions) {
        action();
      }
    },
    { once: true },
  );
  return actions;
}

function nothing(): void {}
