import type { Duplex } from "node:stream";
import { type SecureContext, TLSSocket } from "node:tls";
import { errnoOrIo, reset } from "../tunnel/join.js";

export type AcceptedTls = { kind: "accepted"; stream: TLSSocket } | { kind: "failed"; errno: string };

/**
 * Answers a program's TLS greeting as the server. Only HTTP/1.1 is offered, so that programs that also speak HTTP/2
 * fall back to it. `errno` is Node's code, for example that of a program that does not trust the certificate.
 */
export async function acceptTls(
  inside: Duplex,
  { secureContext, timeoutMs }: { secureContext: SecureContext; timeoutMs: number },
): Promise<AcceptedTls> {
  const stream = new TLSSocket(inside, { isServer: true, secureContext, ALPNProtocols: ["http/1.1"] });
  const errno = await new Promise<string | null>((resolve) => {
    const timer = setTimeout(() => settle("ETIMEDOUT"), timeoutMs);
    const settle = (result: string | null) => {
      clearTimeout(timer);
      resolve(result);
    };
    stream.once("secure", () => settle(null));
    stream.on("_tlsError", (error) => settle(errnoOrIo(error)));
    stream.on("error", (error) => settle(errnoOrIo(error)));
    stream.once("close", () => settle("ECONNRESET"));
  });
  if (errno === null) return { kind: "accepted", stream };
  stream.destroy();
  reset(inside);
  return { kind: "failed", errno };
}
