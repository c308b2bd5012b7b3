import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { Duplex, Readable } from "node:stream";
import { createSecureContext, type SecureContext, TLSSocket } from "node:tls";
import {
  authorityCertificate,
  type KeyPair,
  keyFromPem,
  keyToPem,
  newKeyPair,
  serverCertificate,
} from "../../lib/tls/certificate.js";
import type { RequestRule, SourcedRule } from "../policy/egress-schema.js";
import type { Canary } from "./canaries/new-canary.js";
import { errnoOrIo, reset } from "./join.js";
import { type ReadRequest, readRequest } from "./read-request.js";
import { coversEndpoint, type Endpoint } from "./rules/decide.js";
import type { Denial } from "./rules/denial.js";
import { hostOf } from "./rules/target.js";
import { AnswerMask, askForPlainAnswer, type MaskedAnswer, maskAnswer } from "./secrets/answer-mask.js";
import type { HeldAwsSecret } from "./secrets/aws/aws-keys.js";
import { type AwsSigning, findAwsPlaceholders } from "./secrets/aws/find-aws-placeholders.js";
import { KeptBodies } from "./secrets/aws/read-body.js";
import type { SignedRequest, UnsignedRequest } from "./secrets/aws/sign-request.js";
import {
  type AppliedSecrets,
  applySecrets,
  type HeldSecret,
  mayReceive,
  type RequestHead,
} from "./secrets/held-secret.js";
import type { SecretMask } from "./secrets/secret-mask.js";
import { credentialsIn, type SentHeaders, sentHeadersFor, withSentHeaders } from "./secrets/sent-headers.js";
import { type ConnectedTls, connectTls, trusting } from "./tls/connect-tls.js";

export interface InspectionOptions {
  rules: readonly SourcedRule[];
  secrets: readonly HeldSecret[];
  /** Keys of AWS, which sign requests. Default: none. */
  awsSecrets?: readonly HeldAwsSecret[];
  /** Secrets that are not real, which nothing may send. Default: none. */
  canaries?: readonly Canary[];
  /** Headers that requests get on their way out. They can be replaced later if there is a list, even one without any. Default: none. */
  sentHeaders?: readonly SentHeaders[] | undefined;
  /** Certificate authorities in PEM that servers may have besides those that Node trusts. */
  authorities: readonly string[];
  /** Hides the secrets in what leaves the sandbox. Absent without secrets. */
  mask?: SecretMask | undefined;
}

/** A request that a program has sent, before it is sent on. */
export interface JudgedRequest extends RequestHead {
  method: string;
  /** Node's `IncomingMessage.headers`: names in lower case, equal ones joined. */
  parsedHeaders: Readonly<IncomingHttpHeaders>;
  endpoint: Endpoint;
  isTls: boolean;
}

export type RequestDecision =
  /** `rule` is null for a host that gets any request. */
  | {
      kind: "allowed";
      rule: string | null;
      headers: string[];
      path: string;
      /** Null if it is sent as it is. */
      signing: AwsSigning | null;
    }
  | { kind: "denied"; denial: Denial };

/** Looks into the requests to hosts that rules for requests or secrets name, and into their answers. */
export class Inspection {
  readonly #rules: readonly SourcedRule[];
  readonly #secrets: readonly HeldSecret[];
  readonly #awsSecrets: readonly HeldAwsSecret[];
  #sent: readonly SentHeaders[];
  #mask: { hidden: string; mask: AnswerMask } | null = null;
  readonly #keptBodies = new KeptBodies();
  readonly #trusted: SecureContext;
  readonly #own: SessionAuthority;

  private constructor(
    { rules, secrets, awsSecrets = [], sentHeaders = [], authorities }: InspectionOptions,
    own: SessionAuthority,
  ) {
    this.#rules = rules;
    this.#secrets = secrets;
    this.#awsSecrets = awsSecrets;
    this.#sent = sentHeaders;
    this.#trusted = trusting(authorities);
    this.#own = own;
  }

  /** With the authority that programs trust already; default: with a new one. */
  static async create(options: InspectionOptions, authority?: AuthorityInPem): Promise<Inspection> {
    const own = authority === undefined ? SessionAuthority.create() : SessionAuthority.from(authority);
    return new Inspection(options, await own);
  }

  /** The authority, with its keys, for another process. */
  async authority(): Promise<AuthorityInPem> {
    return await this.#own.inPem();
  }

  /** Certificate in PEM that programs in the sandbox have to trust. */
  get certificate(): string {
    return this.#own.certificate;
  }

  /** Whether requests to some hosts need a rule. */
  get hasRules(): boolean {
    return this.#rules.length > 0;
  }

  /** Replaces the headers that requests get from now on. */
  setSentHeaders(sent: readonly SentHeaders[]): void {
    this.#sent = sent;
  }

  /** Whether TLS to this endpoint is ended here. */
  covers(endpoint: Endpoint): boolean {
    return (
      this.#ruled(endpoint).length > 0 ||
      sentHeadersFor(endpoint, this.#sent) !== null ||
      this.#hasSecretsFor(endpoint, true) ||
      this.#signsFor(endpoint, true)
    );
  }

  async accept(inside: Duplex, { target }: Endpoint, timeoutMs: number): Promise<AcceptedTls> {
    return await acceptTls(inside, { secureContext: await this.#own.contextFor(hostOf(target)), timeoutMs });
  }

  async connect(socket: Socket, { target }: Endpoint, timeoutMs: number): Promise<ConnectedTls> {
    return await connectTls(socket, { target, secureContext: this.#trusted, timeoutMs });
  }

  judge({ method, parsedHeaders, endpoint, isTls, ...head }: JudgedRequest): RequestDecision {
    const rules = this.#ruled(endpoint);
    let rule: string | null = null;
    if (rules.length > 0) {
      const reading = readRequest(method, head.path, parsedHeaders);
      if (reading.kind === "ambiguous") return { kind: "denied", denial: reading };
      const allowing = allowingRules(rules, reading.request);
      if (allowing === null)
        return { kind: "denied", denial: { kind: "request", method, path: head.path.replace(/\?.*$/s, "") } };
      rule = allowing.map(describeRule).join(" and ");
    }
    const applied: AppliedSecrets = applySecrets(head, { secrets: this.#secrets, endpoint, isTls });
    if (applied.kind === "denied") return applied;
    const found = findAwsPlaceholders(head, { secrets: this.#awsSecrets, endpoint, isTls });
    if (found.kind === "denied") return found;
    const headers = this.#hasSecretsFor(endpoint, isTls)
      ? askForPlainAnswer(applied.headers)
      : applied.headers;
    const sent = isTls ? sentHeadersFor(endpoint, this.#sent) : null;
    return {
      kind: "allowed",
      rule,
      headers: sent === null ? headers : withSentHeaders(headers, sent),
      path: applied.path,
      signing: found.signing,
    };
  }

  /** Signs a request, whose body may have to be read for it. The connection `to` is the one that it is sent on. */
  async sign(
    signing: AwsSigning,
    { from, to, idleTimeoutMs, ...request }: SignOptions,
  ): Promise<SignedRequest> {
    const { signRequest } = await import("./secrets/aws/sign-request.js");
    const readBody = async () => await this.#keptBodies.read(from, { to, idleTimeoutMs });
    return await signRequest(signing, { ...request, readBody });
  }

  /** The part of an answer that reaches the program. Null if the answer cannot be inspected. */
  answer(
    incoming: IncomingMessage,
    {
      endpoint,
      isTls,
      ...answer
    }: { endpoint: Endpoint; isTls: boolean; headers: readonly string[]; method: string },
  ): MaskedAnswer | null {
    // A program of AWS gets ranges and compressed answers, as it asked for them.
    const isPlain = (incoming.headers["content-encoding"] ?? "identity") === "identity";
    const isWhole = this.#hasSecretsFor(endpoint, isTls);
    const isMasked = isWhole || (isPlain && this.#signsFor(endpoint, isTls));
    if (!isMasked) return { reason: incoming.statusMessage ?? "", headers: [...answer.headers], through: [] };
    return maskAnswer(incoming, { ...answer, mask: this.#currentMask(), isWhole });
  }

  /** Made once, and anew when keys of AWS were read anew. */
  #currentMask(): AnswerMask {
    const values = [
      ...this.#secrets.map(({ value }) => value),
      ...this.#awsSecrets.flatMap(({ keys }) => keys.hidden),
      ...credentialsIn(this.#sent),
    ];
    const hidden = values.join("\n");
    if (this.#mask?.hidden !== hidden) this.#mask = { hidden, mask: new AnswerMask(values) };
    return this.#mask.mask;
  }

  #ruled(endpoint: Endpoint): SourcedRule[] {
    return this.#rules.filter(({ host }) => coversEndpoint(host, endpoint));
  }

  #signsFor(endpoint: Endpoint, isTls: boolean): boolean {
    return this.#awsSecrets.some((secret) => mayReceive(secret, endpoint, isTls));
  }

  #hasSecretsFor(endpoint: Endpoint, isTls: boolean): boolean {
    const sent = isTls ? sentHeadersFor(endpoint, this.#sent) : null;
    if (sent !== null && credentialsIn([sent]).length > 0) return true;
    return this.#secrets.some((secret) => mayReceive(secret, endpoint, isTls));
  }
}

interface SignOptions extends Omit<UnsignedRequest, "readBody"> {
  from: Readable;
  to: Duplex;
  idleTimeoutMs: number;
}

type AcceptedTls = { kind: "accepted"; stream: TLSSocket } | { kind: "failed"; errno: string };

/**
 * Answers a program's TLS greeting as the server. Only HTTP/1.1 is offered, so that programs that also speak HTTP/2
 * fall back to it. `errno` is Node's code, for example that of a program that does not trust the certificate.
 */
async function acceptTls(
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

/** A program can ask for any number of names below one that a rule allows. */
const MAX_CONTEXTS = 256;

/** The certificate authority of one sandbox. */
export interface AuthorityInPem {
  certificate: string;
  signer: string;
  keys: string;
}

const AUTHORITY_NAME = "brig: certificate authority of one sandbox";

/** The certificate authority of one sandbox, which only this sandbox is told to trust. */
class SessionAuthority {
  /** Certificate in PEM. */
  readonly certificate: string;
  readonly #signer: KeyPair;
  /** Shared by the certificates of all servers: making a key takes longer than signing. */
  readonly #keys: KeyPair;
  readonly #contexts = new Map<string, Promise<SecureContext>>();

  private constructor({ certificate, signer, keys }: Keys) {
    this.certificate = certificate;
    this.#signer = signer;
    this.#keys = keys;
  }

  static async create(): Promise<SessionAuthority> {
    const [signer, keys] = await Promise.all([newKeyPair(), newKeyPair()]);
    const certificate = await authorityCertificate(AUTHORITY_NAME, signer);
    return new SessionAuthority({ certificate, signer, keys });
  }

  static async from({ certificate, ...pem }: AuthorityInPem): Promise<SessionAuthority> {
    const [signer, keys] = await Promise.all([keyFromPem(pem.signer), keyFromPem(pem.keys)]);
    return new SessionAuthority({ certificate, signer, keys });
  }

  async inPem(): Promise<AuthorityInPem> {
    const [signer, keys] = await Promise.all([keyToPem(this.#signer), keyToPem(this.#keys)]);
    return { certificate: this.certificate, signer, keys };
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
    const signing = { issuer: AUTHORITY_NAME, signer: this.#signer, keys: this.#keys };
    const cert = await serverCertificate(host, signing);
    return createSecureContext({ cert, key: await keyToPem(this.#keys), minVersion: "TLSv1.2" });
  }
}

interface Keys {
  certificate: string;
  signer: KeyPair;
  keys: KeyPair;
}

/** The first rule of each source that allows the request; null if one of the sources has none. */
export function allowingRules(rules: readonly SourcedRule[], request: ReadRequest): RequestRule[] | null {
  const sources = [...new Set(rules.map(({ source = 0 }) => source))];
  const allowing = sources.flatMap((one) => {
    const rule = allowingRule(
      rules.filter(({ source = 0 }) => source === one),
      request,
    );
    return rule === null ? [] : [rule];
  });
  return allowing.length === sources.length ? allowing : null;
}

/** The rule has to allow the request in each way in which it may be read. */
function allowingRule(
  rules: readonly RequestRule[],
  { method, paths, queries }: ReadRequest,
): RequestRule | null {
  const allows = (rule: RequestRule) =>
    (rule.methods === undefined || rule.methods.includes(method)) &&
    paths.every((path) => rule.path === undefined || matchesPattern(rule.path, path)) &&
    queries.every((query) => rule.query === undefined || hasOnly(rule.query, query));
  return rules.find(allows) ?? null;
}

/** A parameter that is there twice is refused, since programs differ in which one they take. */
function hasOnly(allowed: Readonly<Record<string, string>>, query: ReadRequest["queries"][number]): boolean {
  const names = new Set(query.map(({ name }) => name));
  if (names.size !== query.length) return false;
  return query.every(({ name, value }) => {
    const pattern = Object.hasOwn(allowed, name) ? allowed[name] : undefined;
    // A slash is nothing special in a value.
    return pattern !== undefined && matchesPattern(pattern.replaceAll(/\*+/g, "**"), value);
  });
}

/** A rule in one line, for messages and records: `GET,HEAD api.github.com /repos/acme/**`. */
export function describeRule({ host, methods, path, query }: RequestRule): string {
  const parameters = Object.entries(query ?? {}).map(([name, value]) => `${name}=${value}`);
  const shownQuery = query === undefined ? "" : `?${parameters.join("&")}`;
  return `${methods?.join(",") ?? "any method"} ${host} ${path ?? "any path"}${shownQuery}`;
}

/**
 * Whether the whole text matches: `*` stands for any characters but a slash, `**` for any at all. Takes time in
 * proportion to both lengths, whatever a program puts into its URL.
 */
function matchesPattern(pattern: string, text: string): boolean {
  const tokens = pattern.match(/\*\*|[\s\S]/g) ?? [];
  const reach = (states: boolean[]) => {
    for (const [at, token] of tokens.entries())
      if (states[at] && token.startsWith("*")) states[at + 1] = true;
    return states;
  };
  let states = reach([true]);
  for (const character of text.split("")) {
    const next: boolean[] = [];
    for (const [at, token] of tokens.entries()) {
      if (!states[at]) continue;
      if (token === "**" || (token === "*" && character !== "/")) next[at] = true;
      if (token === character && token !== "*") next[at + 1] = true;
    }
    states = reach(next);
  }
  return states[tokens.length] === true;
}
