import { EventEmitter, once } from "node:events";

const requests = new EventEmitter();

/** Told by whatever sends a request, once its last byte has left this process. */
export function noteRequestSent(): void {
  requests.emit("sent");
}

/** Resolves when this process has sent a request to any endpoint, or after so many milliseconds. */
export async function requestSent({ withinMs }: { withinMs: number }): Promise<void> {
  const patience = new AbortController();
  // An AbortSignal of a timeout keeps no process alive: after an interrupt there may be nothing else to.
  const timer = setTimeout(() => patience.abort(), withinMs);
  await once(requests, "sent", { signal: patience.signal }).catch(() => undefined);
  clearTimeout(timer);
}
