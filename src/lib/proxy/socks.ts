import type { Socket } from "node:net";
import type { ProxyAddress } from "./proxy-address.js";

const VERSION = 5;
const NO_AUTHENTICATION = 0;
const PASSWORD = 2;
const CONNECT = 1;
const NAME = 3;
/** The errno for each answer, by the number of the answer (RFC 1928). */
const ERRNOS: readonly string[] = [
  ...["", "EIO", "EACCES", "ENETUNREACH", "EHOSTUNREACH", "ECONNREFUSED", "ETIMEDOUT", "EOPNOTSUPP"],
];

/** Asks a SOCKS 5 proxy, which looks the name up itself (RFC 1928, 1929). */
export function askSocks(
  socket: Socket,
  { user }: ProxyAddress,
  { host, port, settle }: { host: string; port: number; settle: (errno: string | null) => void },
): void {
  const target = lengthPrefixed(host);
  const credentials = [lengthPrefixed(user?.name ?? ""), lengthPrefixed(user?.password ?? "")];
  if ([target, ...credentials].includes(null)) {
    settle("EINVAL");
    return;
  }
  const method = user === null ? NO_AUTHENTICATION : PASSWORD;
  const connectTo = () =>
    socket.write(Buffer.from([VERSION, CONNECT, 0, NAME, ...(target ?? []), port >> 8, port & 0xff]));
  let step: "method" | "password" | "connect" = "method";
  let received = Buffer.alloc(0);
  const end = (errno: string | null) => {
    socket.off("readable", take);
    if (received.length > 0) socket.unshift(received);
    settle(errno);
  };
  // Unlike "data", it leaves the socket as it was: what comes next is for whoever uses the connection.
  const take = () => {
    received = Buffer.concat([received, socket.read() ?? Buffer.alloc(0)]);
    for (;;) {
      const length = step === "connect" ? answerLength(received) : 2;
      if (received.length < length) return;
      const [, code = 1] = received;
      received = received.subarray(length);
      if (step === "connect") return end(code === 0 ? null : (ERRNOS[code] ?? "EIO"));
      if (step === "password") {
        if (code !== 0) return end("EACCES");
        step = "connect";
        connectTo();
      } else if (code === PASSWORD && method === PASSWORD) {
        step = "password";
        socket.write(Buffer.from([1, ...(credentials[0] ?? []), ...(credentials[1] ?? [])]));
      } else if (code === NO_AUTHENTICATION) {
        step = "connect";
        connectTo();
      } else return end("EACCES");
    }
  };
  socket.on("readable", take);
  const offered = user === null ? [NO_AUTHENTICATION] : [NO_AUTHENTICATION, PASSWORD];
  socket.write(Buffer.from([VERSION, offered.length, ...offered]));
}

/** Five bytes say how long an answer with an address is. */
function answerLength(received: Buffer): number {
  const [, , , kind, length = 0] = received;
  if (received.length < 5) return 5;
  return kind === NAME ? 7 + length : kind === 4 ? 22 : 10;
}

function lengthPrefixed(text: string): number[] | null {
  const bytes = [...Buffer.from(text)];
  return bytes.length > 255 ? null : [bytes.length, ...bytes];
}
