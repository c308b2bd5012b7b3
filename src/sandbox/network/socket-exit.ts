import { BrigError, isBrigError } from "../../errors.js";
import type { ChannelEvents } from "../channel/channel-events.js";
import { protocolError } from "../channel/frames.js";
import { errnoName } from "../process/errno-names.js";
import { parseExit } from "../process/exit-record.js";

/**
 * The errno with which the runner closed a socket, or null. Error: `protocol.invalid`, of which the channel is told,
 * since the link has forgotten it already.
 */
export function parseSocketExit(payload: Buffer, channel: Pick<ChannelEvents, "onGone">): string | null {
  try {
    const { kind, errno } = parseExit(payload);
    if (kind !== "socket") throw protocolError(`an EXIT of kind ${kind} for a socket`);
    return errno === 0 ? null : errnoName(errno);
  } catch (error) {
    if (isBrigError(error)) channel.onGone(error);
    throw error;
  }
}

const texts: ReadonlyMap<string, string> = new Map([
  ["EADDRINUSE", "another program in the sandbox listens there already"],
  ["EADDRNOTAVAIL", "the sandbox has no such address"],
  ["EACCES", "the sandbox's user may not listen on ports as low as this"],
  ["ECONNREFUSED", "nothing in the sandbox listens there"],
  ["ECONNRESET", "the program in the sandbox broke the connection"],
  ["EPIPE", "the program in the sandbox has closed the connection"],
  ["EMFILE", "the sandbox has too many connections open"],
]);

/** Error: `sandbox.port-in-use` or `sandbox.port-failed`. */
export function socketError(what: string, errno: string): BrigError {
  return new BrigError(`${what}: ${texts.get(errno) ?? errno}`, {
    code: errno === "EADDRINUSE" ? "sandbox.port-in-use" : "sandbox.port-failed",
    errno,
    cause: Object.assign(new Error(errno), { code: errno }),
  });
}
