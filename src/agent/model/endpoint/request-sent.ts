import { EventEmitter, once } from "node:events";
import { TimeLimit } from "../../../lib/time/time-limit.js";

const requests = new EventEmitter();

/** Must be called when the last byte of a request has left this process. */
export function noteRequestSent(): void {
  requests.emit("sent");
}

/** Resolves when this process has sent a request to any endpoint, or after `withinMs`. */
export async function requestSent({ withinMs }: { withinMs: number }): Promise<void> {
  using limit = new TimeLimit(withinMs);
  await once(requests, "sent", { signal: limit.signal }).catch(() => undefined);
}
