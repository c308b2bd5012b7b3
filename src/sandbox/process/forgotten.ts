import { Socket } from "node:net";
import { BrigError } from "../../errors.js";
import type { OpenedSandbox } from "../open-sandbox.js";

const LOOK_EVERY_MS = 2000;
/** The number of looks in a row at which nothing must have happened. */
const QUIET_LOOKS = 2;
/** Node's names for a connection to the engine, of which each sandbox has one, and for the program's own output. */
const CONNECTIONS = new Set(["PipeWrap", "TCPSocketWrap", "TLSWrap", "TTYWrap"]);

interface Watched {
  opened: OpenedSandbox;
  /** The pool that it is of, which is told of once. */
  pool: object | null;
  /** The count of pending calls when it was opened: an allow-list has channels of its own, and a pool waits for the end of its sandboxes. */
  pending: number;
  closedFirst: number;
  /** The number of channels at the last look. */
  used: number;
}

const watched = new Map<OpenedSandbox, Watched>();
let quietLooks = 0;

/**
 * Tells a program, once for each sandbox and by its `onWarning`, that nothing else keeps it running than sandboxes
 * that it has not closed. Otherwise it would wait for ever, and nobody would know why. One that has ports open may
 * be meant to wait.
 */
export function tellIfForgotten(opened: OpenedSandbox, pool: object | null = null): void {
  const { pendingCount: pending, channelCount: used } = opened.link;
  const closedFirst = opened.closedFirst?.length ?? 0;
  if (watched.size === 0) {
    const timer = setInterval(() => {
      if (!looksAgain()) clearInterval(timer);
    }, LOOK_EVERY_MS);
    timer.unref();
  }
  watched.set(opened, { opened, pool, pending, closedFirst, used });
}

function looksAgain(): boolean {
  for (const opened of watched.keys()) if (opened.link.isOver) watched.delete(opened);
  quietLooks = isQuiet() ? quietLooks + 1 : 0;
  if (quietLooks >= QUIET_LOOKS) {
    const byOwner = new Map([...watched.values()].map((one) => [one.pool ?? one.opened, one]));
    for (const one of byOwner.values()) one.opened.warn(forgotten(one));
    watched.clear();
  }
  if (watched.size === 0) quietLooks = 0;
  return watched.size > 0;
}

function isQuiet(): boolean {
  let isUnused = true;
  for (const one of watched.values()) {
    const { link, closedFirst = [] } = one.opened;
    if (link.pendingCount !== one.pending || link.channelCount !== one.used) isUnused = false;
    if (closedFirst.length !== one.closedFirst) isUnused = false;
    one.used = link.channelCount;
  }
  // Node counts these as well if they are pipes or terminals, although they keep no program running.
  const outputs = [process.stdout, process.stderr].filter((output) => output instanceof Socket);
  const resources = process.getActiveResourcesInfo();
  return (
    isUnused &&
    resources.length <= watched.size + outputs.length &&
    resources.every((one) => CONNECTIONS.has(one))
  );
}

function forgotten({ pool, opened: { plan } }: Watched): BrigError {
  const message =
    pool === null
      ? `nothing but the open sandbox ${plan.sessionId} keeps this program running; close it with sandbox.close(), or open it with \`await using\``
      : "nothing but the open pool of sandboxes keeps this program running; close it with pool.close(), and each sandbox from it with sandbox.close(), or open both with `await using`";
  return new BrigError(message, { code: "usage.invalid" });
}
