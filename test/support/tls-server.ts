import { once } from "node:events";
import type { RequestListener } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import {
  authorityCertificate,
  keyToPem,
  newKeyPair,
  serverCertificate,
} from "../../src/lib/tls/certificate.js";

/** A server of HTTPS on a free port of 127.0.0.1, with a certificate of a company's own authority. */
export async function tlsServer(host: string, onRequest: RequestListener) {
  const [signer, keys] = await Promise.all([newKeyPair(), newKeyPair()]);
  const issuer = "an authority of a test";
  const authority = await authorityCertificate(issuer, signer);
  const cert = await serverCertificate(host, { issuer, signer, keys });
  const server = createServer({ cert, key: await keyToPem(keys) }, onRequest);
  let connections = 0;
  server.on("secureConnection", () => {
    connections += 1;
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    /** In PEM. */
    authority,
    port: (server.address() as AddressInfo).port,
    server,
    /** How many there have been. */
    get connections() {
      return connections;
    },
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
