import { randomBytes, type X509Certificate } from "node:crypto";
import type { Server } from "node:http";
import type { Server as TlsServer } from "node:https";
import type { SecureContextOptions, TlsOptions } from "node:tls";
import { certificateOf, type TlsIdentity } from "./tls-identity.js";

/** What a service proves itself with at the moment: connections that come later are shown what was read last. */
export class RenewedTls {
  #identity: TlsIdentity;
  #server: TlsServer | null = null;
  #certificate: X509Certificate;

  constructor(identity: TlsIdentity) {
    this.#identity = identity;
    this.#certificate = certificateOf(identity);
  }

  get certificate(): X509Certificate {
    return this.#certificate;
  }

  /** How a server is made that has it. */
  get serverOptions(): TlsOptions {
    const asksClients = this.#identity.ca !== undefined;
    return {
      ...secureOptions(this.#identity),
      ...{ requestCert: asksClients, rejectUnauthorized: asksClients, ALPNProtocols: ["http/1.1"] },
    };
  }

  /** From now on the server gets what is renewed. */
  attach(server: Server): void {
    this.#server = server as TlsServer;
  }

  renew(identity: TlsIdentity): void {
    this.#identity = identity;
    this.#certificate = certificateOf(identity);
    this.#server?.setSecureContext(secureOptions(identity));
    // Whoever goes on with an earlier session is not asked for a certificate again.
    this.#server?.setTicketKeys(randomBytes(48));
  }
}

function secureOptions({ cert, key, ca }: TlsIdentity): SecureContextOptions {
  return { cert, key, ca, minVersion: "TLSv1.2" };
}
