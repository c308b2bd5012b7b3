import { createSecureContext, type SecureContext } from "node:tls";
import {
  authorityCertificate,
  type KeyPair,
  keyToPem,
  newKeyPair,
  serverCertificate,
} from "./certificate.js";

/** A program can ask for any number of names below one that a rule allows. */
const MAX_CONTEXTS = 256;

/** The certificate authority of one sandbox, which only this sandbox is told to trust. */
export class SessionAuthority {
  /** Certificate in PEM. */
  readonly certificate: string;
  readonly #name: string;
  readonly #signer: KeyPair;
  /** Shared by the certificates of all servers: making a key takes longer than signing. */
  readonly #keys: KeyPair;
  readonly #contexts = new Map<string, Promise<SecureContext>>();

  private constructor(name: string, { certificate, signer, keys }: Keys) {
    this.certificate = certificate;
    this.#name = name;
    this.#signer = signer;
    this.#keys = keys;
  }

  static async create(): Promise<SessionAuthority> {
    const name = "brig: certificate authority of one sandbox";
    const [signer, keys] = await Promise.all([newKeyPair(), newKeyPair()]);
    return new SessionAuthority(name, {
      certificate: await authorityCertificate(name, signer),
      signer,
      keys,
    });
  }

  /** The TLS context with which a server answers as this name or address. */
  async contextFor(host: string): Promise<SecureContext> {
    const known = this.#contexts.get(host) ?? this.#make(host);
    // Last in the map is what was used last.
    this.#contexts.delete(host);
    this.#contexts.set(host, known);
    const [oldest] = this.#contexts.keys();
    if (this.#contexts.size > MAX_CONTEXTS && oldest !== undefined) this.#contexts.delete(oldest);
    return await known;
  }

  async #make(host: string): Promise<SecureContext> {
    const signing = { issuer: this.#name, signer: this.#signer, keys: this.#keys };
    const cert = await serverCertificate(host, signing);
    return createSecureContext({ cert, key: await keyToPem(this.#keys), minVersion: "TLSv1.2" });
  }
}

interface Keys {
  certificate: string;
  signer: KeyPair;
  keys: KeyPair;
}
