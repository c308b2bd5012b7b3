import { BrigError } from "../../../errors.js";
import type { RunnerLink } from "../../channel/runner-link.js";
import type { AskAboutHost, EgressAttempt, EgressPhase } from "../../egress/attempt.js";
import type { Canary } from "../../egress/canaries/new-canary.js";
import type { OnCanary } from "../../egress/gate.js";
import type { AuthorityInPem, Inspection, InspectionOptions } from "../../egress/inspection.js";
import { type Egress, type EgressOptions, openEgress } from "../../egress/open-egress.js";
import { describeDenial } from "../../egress/rules/denial.js";
import type { SentHeaders } from "../../egress/secrets/sent-headers.js";
import type { CallCause } from "../../output/call-cause.js";
import type { SandboxPlan } from "../../plan/plan.js";
import type { NetworkScope } from "../../policy/network.js";
import { SandboxNetwork } from "../sandbox-network.js";

interface SandboxEgressOptions extends Pick<EgressOptions, "hosts" | "resolve" | "upstream"> {
  onEgress?: EgressListener | undefined;
  /** Called when another list of hosts comes into force for commands. */
  onNetwork?: ((network: NetworkScope) => void) | undefined;
  /** Rules for requests, and secrets. Default: none. */
  inspection?: InspectionOptions | null | undefined;
  /** What its programs trust and have since another process has opened it. Default: it is opened for the first time. */
  earlier?: EarlierEgress | undefined;
  /** The plan of the sandbox, which says what the image and the mounts are like. */
  plan: SandboxPlan;
  /** Ends what is started in the sandbox to make programs trust brig's certificates. */
  signal?: AbortSignal | undefined;
}

/** What another process needs, besides the inspection, so that programs which run notice nothing. */
export interface EarlierEgress {
  /** Null where nothing looks into requests. */
  authority: AuthorityInPem | null;
  /** The variables by which programs trust it. */
  trust: Readonly<Record<string, string>>;
}

/** The most calls that are kept for one sandbox. The oldest is forgotten, since its processes have most likely ended. */
const MAX_CALLS = 20_000;

/** Options of `sandbox.watchEgress`. */
export interface WatchEgressOptions {
  /** Answers for hosts that the allow-list does not have. Default: they are refused. */
  ask?: AskAboutHost | undefined;
  /** Called when a program has tried to send a canary. The promise never rejects. */
  onCanarySent?: ((error: Promise<BrigError>) => void) | undefined;
}

/** Receives each attempt of a program to reach something, after it has ended. */
export type EgressListener = (attempt: EgressAttempt) => void;

/** The allow-list of a sandbox at work. */
export class SandboxEgress {
  readonly #egress: Egress;
  readonly #notes: DenialNotes;
  readonly #calls: Map<number, string>;
  readonly #listeners: Set<EgressListener>;
  readonly #sent: EgressParts["sent"];
  readonly #onNetwork: EgressParts["onNetwork"];
  readonly #inspection: EgressParts["inspection"];
  readonly #sendsHeaders: boolean;
  /** Variables for commands: those that make programs trust brig's certificates, and the placeholders of secrets. */
  readonly environment: EgressEnvironment;

  private constructor({ egress, ...parts }: EgressParts) {
    this.#egress = egress;
    this.#notes = parts.notes;
    this.#calls = parts.calls;
    this.#listeners = parts.listeners;
    this.#sent = parts.sent;
    this.#onNetwork = parts.onNetwork;
    this.#inspection = parts.inspection;
    this.#sendsHeaders = parts.sendsHeaders;
    this.environment = parts.environment;
  }

  /** Call it before the first command starts, so that nobody else can be at the proxy's address. Errors: `sandbox.*`. */
  static async open(
    link: RunnerLink,
    { onEgress, onNetwork, inspection: rules, earlier, plan, signal, ...options }: SandboxEgressOptions,
  ): Promise<SandboxEgress> {
    const notes = new DenialNotes();
    const calls = new Map<number, string>();
    const listeners = new Set<EgressListener>(onEgress === undefined ? [] : [onEgress]);
    const onAttempt = (seen: EgressAttempt) => {
      const attempt = rules?.mask?.within(seen) ?? seen;
      notes.add(attempt);
      for (const listener of listeners) deliver(listener, attempt);
    };
    const network = new SandboxNetwork(link, (channel) => calls.get(channel) ?? null);
    const inspection =
      rules && looksIntoRequests(rules) ? await createInspection(rules, earlier?.authority) : undefined;
    const canaries = rules?.canaries ?? [];
    const sent: EgressParts["sent"] = { error: null, listeners: [] };
    const onCanary: OnCanary = (canary) => {
      const error = canarySent(canary);
      sent.error = error;
      for (const listener of sent.listeners) listener(error);
    };
    const egress = await openEgress(network, { ...options, onAttempt, inspection, canaries, onCanary });
    if (earlier === undefined) await plant(link, canaries);
    const newlyTrusted = async () => (inspection ? await trustIn(link, inspection, { plan, signal }) : {});
    const trust = earlier?.trust ?? (await newlyTrusted());
    const placeholders = rules?.secrets.map(({ name, placeholder }) => [name, placeholder]) ?? [];
    const others = [...(rules?.awsSecrets ?? []), ...canaries].map(({ variables }) => variables);
    return new SandboxEgress({
      ...{ egress, notes, calls, listeners, sent, onNetwork },
      ...{ inspection, sendsHeaders: rules?.sentHeaders !== undefined },
      environment: {
        trust,
        placeholders: Object.assign(Object.fromEntries(placeholders), ...others),
      },
    });
  }

  /** Attempts of the channel's processes belong to the call from now on. */
  nameCall(channel: number, callId: string): void {
    this.#calls.set(channel, callId);
    const [oldest] = this.#calls.keys();
    if (this.#calls.size > MAX_CALLS && oldest !== undefined) this.#calls.delete(oldest);
  }

  textFor(command: Parameters<DenialNotes["textFor"]>[0]): string {
    return this.#notes.textFor(command);
  }

  causesFor(channel: number): CallCause[] {
    return this.#notes.causesFor(channel);
  }

  /** Error: `sandbox.canary-sent`, from the first attempt of a program to send a canary on. */
  async requireNoCanarySent(): Promise<void> {
    if (this.#sent.error !== null) throw await this.#sent.error;
  }

  /** Receives each attempt from now on, after it has ended. */
  watch(listener: EgressListener, { ask, onCanarySent }: WatchEgressOptions = {}): void {
    this.#listeners.add(listener);
    if (ask !== undefined) this.#egress.askWith(ask);
    if (onCanarySent !== undefined) this.#sent.listeners.push(onCanarySent);
  }

  /** The entries of the list of the moment. */
  get hosts(): readonly string[] {
    return this.#egress.hosts;
  }

  /** Error: `policy.not-enforced` for the network full, which this container does not have. */
  set(network: NetworkScope, phase: EgressPhase = "run"): void {
    if (network.kind === "full")
      throw new BrigError("a sandbox with an allow-list cannot get the full network while it runs", {
        code: "policy.not-enforced",
        hint: "allow @public, or create another sandbox",
      });
    this.#egress.setHosts(network.kind === "none" ? [] : network.hosts, phase);
    if (phase === "run") this.#onNetwork?.(network);
  }

  /** Replaces the headers that requests get on their way out. Error: `policy.not-enforced` for a sandbox that was opened without a list of them. */
  setSentHeaders(sent: readonly SentHeaders[]): void {
    if (this.#inspection === undefined || !this.#sendsHeaders)
      throw new BrigError(
        "the headers of requests of this sandbox cannot change: it was created without any",
        {
          code: "policy.not-enforced",
          hint: "create another sandbox with rules for headers",
        },
      );
    this.#inspection.setSentHeaders(sent);
  }

  /** What another process needs to go on with it. */
  async kept(): Promise<EarlierEgress> {
    return { authority: (await this.#inspection?.authority()) ?? null, trust: this.environment.trust };
  }

  async close(): Promise<void> {
    await this.#egress.close();
  }
}

interface EgressEnvironment {
  trust: Readonly<Record<string, string>>;
  placeholders: Readonly<Record<string, string>>;
}

interface EgressParts extends Pick<SandboxEgressOptions, "onNetwork"> {
  environment: EgressEnvironment;
  egress: Egress;
  notes: DenialNotes;
  calls: Map<number, string>;
  listeners: Set<EgressListener>;
  /** Undefined where nothing looks into requests. */
  inspection: Inspection | undefined;
  /** Whether it has headers of requests, which can be replaced. */
  sendsHeaders: boolean;
  /** Null as long as no program has tried to send a canary. */
  sent: { error: Promise<BrigError> | null; listeners: ((error: Promise<BrigError>) => void)[] };
}

/** No call is waiting that could report an error of the listener, so it becomes a process warning. */
function deliver(listener: EgressListener, attempt: EgressAttempt): void {
  try {
    listener(attempt);
  } catch (error) {
    process.emitWarning(error instanceof Error ? error : String(error));
  }
}

/** Loaded only where there are rules for requests, or secrets. */
async function createInspection(
  options: InspectionOptions,
  authority: AuthorityInPem | null | undefined,
): Promise<Inspection> {
  const { Inspection } = await import("../../egress/inspection.js");
  return await Inspection.create(options, authority ?? undefined);
}

function looksIntoRequests({ rules, secrets, awsSecrets = [], sentHeaders }: InspectionOptions): boolean {
  return sentHeaders !== undefined || rules.length + secrets.length + awsSecrets.length > 0;
}

async function canarySent({ name, host, owner }: Parameters<OnCanary>[0]): Promise<BrigError> {
  const { program = null, callId = null } = (await owner) ?? {};
  const by = program === null ? "a program" : `the program ${JSON.stringify(program)}`;
  const call = callId === null ? "" : ` of the call ${callId}`;
  return new BrigError(`${by}${call} tried to send the canary ${name} to ${host}`, {
    code: "sandbox.canary-sent",
    hint: "look at what made it do so: nothing else leaves this sandbox",
  });
}

async function plant(link: RunnerLink, canaries: readonly Canary[]): Promise<void> {
  for (const { name, file } of canaries) {
    if (file === null) continue;
    const { plantFile } = await import("./plant-canary.js");
    await plantFile(link, { name, ...file });
  }
}

async function trustIn(
  link: RunnerLink,
  { certificate }: Inspection,
  options: { plan: SandboxPlan; signal: AbortSignal | undefined },
): Promise<Record<string, string>> {
  const { trustInside } = await import("./trust.js");
  return await trustInside(link, certificate, options);
}

interface Denied {
  /** Null for a name that was looked up: datagrams do not say whose they are. */
  channel: number | null;
  /** The host and port that were asked for. */
  target: string;
  sentence: string;
  cause: CallCause & { kind: "network-rule" };
  /** The time of the last refusal. */
  atMs: number;
  /** The number of refusals. */
  count: number;
}

/** The most refusals that are kept for one sandbox. Older ones are forgotten, since their commands have most likely ended. */
const MAX_KEPT = 500;
/** The most different refusals that are shown for one command. */
const MAX_SHOWN = 10;
/** The most refusals that are named in one line. */
const MAX_IN_LINE = 5;

interface RanCommand {
  channel: number;
  startedAtMs: number;
  /** A person sees its output; the program may have run for hours. */
  isOnTerminal: boolean;
}

/** Refusals of the allow-list, for the output of the commands that caused them. */
export class DenialNotes {
  #denied: Denied[] = [];

  add({ outcome, owner, host, port, startedAtMs }: EgressAttempt): void {
    if (outcome.kind !== "denied") return;
    const target = port === null ? host : `${host}:${port}`;
    const sentence = describeDenial(outcome.denial, target);
    const channel = owner?.channel ?? null;
    const known = this.#denied.find((one) => one.channel === channel && one.sentence === sentence);
    // Names that were looked up are not added up, since each may be another command's.
    if (known !== undefined && channel !== null) {
      known.count += 1;
      known.atMs = startedAtMs;
      return;
    }
    const cause = { kind: "network-rule", host, port, denial: outcome.denial.kind } as const;
    this.#denied.push({ channel, target, sentence, cause, atMs: startedAtMs, count: 1 });
    if (this.#denied.length > MAX_KEPT) this.#denied = this.#denied.slice(-MAX_KEPT / 2);
  }

  /** Refusals for the channel, each once. Looked-up names are left out, since it is not known which command asked for them. */
  causesFor(channel: number): CallCause[] {
    const own = this.#denied.filter((one) => one.channel === channel);
    return own.map(({ cause }) => cause).slice(0, MAX_SHOWN);
  }

  /** The text for the end of a command's output; empty if nothing was refused. */
  textFor(command: RanCommand): string {
    const denied = this.#deniedTo(command);
    if (denied.length === 0) return "";
    return command.isOnTerminal ? `\n[${inOneLine(denied)}]\n` : `\n[${inLines(denied)}]\n`;
  }

  #deniedTo({ channel, startedAtMs }: RanCommand): Denied[] {
    const own = this.#denied.filter(
      (one) => one.channel === channel || (one.channel === null && one.atMs >= startedAtMs),
    );
    const bySentence = new Map<string, Denied>();
    for (const one of own) {
      const count = one.count + (bySentence.get(one.sentence)?.count ?? 0);
      bySentence.set(one.sentence, { ...one, count });
    }
    return [...bySentence.values()];
  }
}

function inLines(denied: readonly Denied[]): string {
  const left = denied.length - MAX_SHOWN;
  const more = left > 0 ? [`and ${left} more`] : [];
  const lines = [...denied.slice(0, MAX_SHOWN).map(({ sentence }) => sentence), ...more];
  return `brig refused connections. Only the user can allow them, with --network:\n${lines.map((one) => `  ${one}`).join("\n")}`;
}

function inOneLine(denied: readonly Denied[]): string {
  const total = denied.reduce((sum, { count }) => sum + count, 0);
  const mostFirst = denied.toSorted((a, b) => b.count - a.count);
  const left = denied.length - MAX_IN_LINE;
  const parts = [
    ...mostFirst.slice(0, MAX_IN_LINE).map((one) => `${one.count} × ${briefly(one)}`),
    ...(left > 0 ? [`and ${left} more`] : []),
  ];
  const connections = total === 1 ? "1 connection" : `${total} connections`;
  return `brig refused ${connections}: ${parts.join(", ")}; only the user can allow them, with --network`;
}

/** For a host that no rule allows, the target alone says enough. */
function briefly({ cause, target, sentence }: Denied): string {
  return cause.denial === "no-rule" ? target : sentence;
}
