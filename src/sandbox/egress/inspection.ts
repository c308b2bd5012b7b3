import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { Duplex, Readable } from "node:stream";
import type { SecureContext } from "node:tls";
import type { SourcedRule } from "../policy/egress/egress-schema.js";
import type { Canary } from "./canaries/new-canary.js";
import { allowingRules, describeRule } from "./requests/decide-request.js";
import { readRequest } from "./requests/read-request.js";
import { coversEndpoint, type Endpoint } from "./rules/decide.js";
import type { Denial } from "./rules/denial.js";
import { hostOf } from "./rules/target.js";
import { AnswerMask } from "./secrets/answer-mask.js";
import { type AppliedSecrets, applySecrets, mayReceive, type RequestHead } from "./secrets/apply-secrets.js";
import { type AwsSigning, findAwsPlaceholders } from "./secrets/aws/find-aws-placeholders.js";
import type { HeldAwsSecret } from "./secrets/aws/held-aws-secret.js";
import { KeptBodies } from "./secrets/aws/read-body.js";
import type { SignedRequest, UnsignedRequest } from "./secrets/aws/sign-request.js";
import type { HeldSecret } from "./secrets/held-secret.js";
import { askForPlainAnswer, type MaskedAnswer, maskAnswer } from "./secrets/masked-answer.js";
import type { SecretMask } from "./secrets/secret-mask.js";
import { type AcceptedTls, acceptTls } from "./tls/accept-tls.js";
import { type ConnectedTls, connectTls, trusting } from "./tls/connect-tls.js";
import { SessionAuthority } from "./tls/session-authority.js";

export interface InspectionOptions {
  rules: readonly SourcedRule[];
  secrets: readonly HeldSecret[];
  /** Keys of AWS, which sign requests. Default: none. */
  awsSecrets?: readonly HeldAwsSecret[];
  /** Secrets that are not real, which nothing may send. Default: none. */
  canaries?: readonly Canary[];
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
  #mask: { hidden: string; mask: AnswerMask } | null = null;
  readonly #keptBodies = new KeptBodies();
  readonly #trusted: SecureContext;
  readonly #own: SessionAuthority;

  private constructor(
    { rules, secrets, awsSecrets = [], authorities }: InspectionOptions,
    own: SessionAuthority,
  ) {
    this.#rules = rules;
    this.#secrets = secrets;
    this.#awsSecrets = awsSecrets;
    this.#trusted = trusting(authorities);
    this.#own = own;
  }

  static async create(options: InspectionOptions): Promise<Inspection> {
    return new Inspection(options, await SessionAuthority.create());
  }

  /** Certificate in PEM that programs in the sandbox have to trust. */
  get certificate(): string {
    return this.#own.certificate;
  }

  /** Whether requests to some hosts need a rule. */
  get hasRules(): boolean {
    return this.#rules.length > 0;
  }

  /** Whether TLS to this endpoint is ended here. */
  covers(endpoint: Endpoint): boolean {
    return (
      this.#ruled(endpoint).length > 0 ||
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
    return { kind: "allowed", rule, headers, path: applied.path, signing: found.signing };
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
    return this.#secrets.some((secret) => mayReceive(secret, endpoint, isTls));
  }
}

interface SignOptions extends Omit<UnsignedRequest, "readBody"> {
  from: Readable;
  to: Duplex;
  idleTimeoutMs: number;
}
