import type { Socket } from "node:net";
import { connect, createSecureContext, rootCertificates, type SecureContext, type TLSSocket } from "node:tls";
import { errnoOrIo } from "../join.js";
import { hostOf, type Target } from "../rules/target.js";

export type ConnectedTls = { kind: "connected"; socket: TLSSocket } | { kind: "failed"; errno: string };

interface ConnectOptions {
  target: Target;
  /** Made by `trusting`. */
  secureContext: SecureContext;
  timeoutMs: number;
}

/**
 * Trusts the authorities that Node trusts, and these, in PEM. Made once for many connections, since reading all
 * certificates takes longer than a connection.
 */
export function trusting(authorities: readonly string[]): SecureContext {
  // Node trusts its own roots and those of NODE_EXTRA_CA_CERTS if this option is not given.
  return createSecureContext(authorities.length > 0 ? { ca: [...rootCertificates, ...authorities] } : {});
}

/** Speaks TLS to a real server, whose certificate has to be valid for the target. */
export async function connectTls(
  socket: Socket,
  { target, secureContext, timeoutMs }: ConnectOptions,
): Promise<ConnectedTls> {
  const host = hostOf(target);
  const secured = connect({
    socket,
    // A name of TLS is never an address; for an address its own entry in the certificate counts.
    ...(target.kind === "name" ? { servername: host } : { host, servername: "" }),
    ALPNProtocols: ["http/1.1"],
    secureContext,
  });
  const errno = await new Promise<string | null>((resolve) => {
    const timer = setTimeout(() => settle("ETIMEDOUT"), timeoutMs);
    const settle = (result: string | null) => {
      clearTimeout(timer);
      resolve(result);
    };
    secured.once("secureConnect", () => settle(null));
    secured.on("error", (error) => settle(errnoOrIo(error)));
    secured.once("close", () => settle("ECONNRESET"));
  });
  if (errno === null) return { kind: "connected", socket: secured };
  secured.destroy();
  socket.destroy();
  return { kind: "failed", errno };
}
