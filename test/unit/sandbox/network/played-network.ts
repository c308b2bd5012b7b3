import { ExitKind } from "../../../../src/sandbox/channel/protocol.js";
import { encodeAddress, SandboxNetwork } from "../../../../src/sandbox/network/sandbox-network.js";
import { exitPayload, type SentFrame } from "../channel/fake-runner.js";
import { playedLink } from "../channel/played-link.js";

export const at = { address: "127.0.0.1", port: 80 };
export const from = { address: "127.0.0.1", port: 40_000 };
/** The payload of CONNECTED. */
export const ends = Buffer.concat([encodeAddress(at), encodeAddress(from)]);

/** The payload of EXIT for a socket. */
export function socketExit(errno = 0): Buffer {
  const payload = exitPayload(0, ExitKind.socket);
  payload.writeUInt32LE(errno, 4);
  return payload;
}

/** A network inside, and what the host has sent to its runner. */
export async function place() {
  const { runner, link } = await playedLink();
  const network = new SandboxNetwork(link);
  const sent = (wanted: number, channel?: number): SentFrame[] =>
    runner.frames.filter((one) => one.type === wanted && (channel === undefined || one.channel === channel));
  return { runner, link, network, sent };
}
