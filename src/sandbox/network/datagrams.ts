import { ADDRESS_BYTES, FrameType, INITIAL_CREDIT } from "../channel/protocol.js";
import type { RunnerLink } from "../channel/runner-link.js";
import type { InsideAddress, InsideListener } from "../egress/inside-network.js";
import { encodeUint32 } from "../process/spawn-request.js";
import { BoundSocket } from "./bound-socket.js";
import { callCallersCode } from "./callers-code.js";

const CREDIT_STEP = INITIAL_CREDIT / 4;
/** The most bytes that fit into one datagram of IPv4. */
const MOST_BYTES = 65_507;

type OnDatagram = (data: Buffer, reply: (data: Buffer) => void) => void;

/**
 * Takes the datagrams that programs in the sandbox send to one of its addresses. Datagrams for which there is no room are
 * lost, as datagrams may be. Errors: as `SandboxListener.open`.
 */
export async function receiveDatagrams(
  link: RunnerLink,
  at: InsideAddress,
  onDatagram: OnDatagram,
): Promise<InsideListener> {
  let ungranted = 0;
  const grant = (bytes: number) => {
    ungranted += bytes;
    if (ungranted < CREDIT_STEP) return;
    link.send(FrameType.credit, socket.channel, encodeUint32(ungranted));
    ungranted = 0;
  };
  let isClosed = false;
  const socket = new BoundSocket(link, at, (payload) => {
    const from = Buffer.from(payload.subarray(0, ADDRESS_BYTES));
    const data = Buffer.from(payload.subarray(ADDRESS_BYTES));
    const reply = (answer: Buffer) => {
      if (isClosed || answer.length > MOST_BYTES) return;
      link.send(FrameType.datagram, socket.channel, Buffer.concat([from, answer]));
    };
    grant(payload.length);
    if (!isClosed) callCallersCode(() => onDatagram(data, reply));
  });
  await socket.bound;
  return {
    async close() {
      isClosed = true;
      await socket.close();
    },
  };
}
