import { BrigError } from "../../../errors.js";
import type { RunnerLink } from "../../channel/runner-link.js";
import type { AskAboutHost } from "../../egress/ask-about-host.js";
import type { EgressAttempt, EgressPhase } from "../../egress/attempt.js";
import type { Canary } from "../../egress/canaries/new-canary.js";
import type { OnCanary } from "../../egress/gate.js";
import type { Inspection, InspectionOptions } from "../../egress/inspection.js";
import { type Egress, type EgressOptions, openEgress } from "../../egress/open-egress.js";
import type { CallCause } from "../../output/call-cause.js";
import type { SandboxPlan } from "../../plan/plan.js";
import type { NetworkScope } from "../../policy/network.js";
import { SandboxNetwork } from "../sandbox-network.js";
import { DenialNotes } from "./denial-notes.js";

interface SandboxEgressOptions extends Pick<EgressOptions, "hosts" | "resolve" | "upstream"> {
  onEgress?: EgressListener | undefined;
  /** Called when another list of hosts comes into force for commands. */
  onNetwork?: ((network: NetworkScope) => void) | undefined;
  /** Rules for requests, and secrets. Default: none. */
  inspection?: InspectionOptions | null | undefined;
  /** The plan of the sandbox, which says what the image and the mounts are like. */
  plan: SandboxPlan;
  /** Ends what is started in the sandbox to make programs trust brig's certificates. */
  signal?: AbortSignal | undefined;
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
  /** Variables for commands: those that make programs trust brig's certificates, and the placeholders of secrets. */
  readonly environment: EgressEnvironment;

  private constructor({ egress, ...parts }: EgressParts) {
    this.#egress = egress;
    this.#notes = parts.notes;
    this.#calls = parts.calls;
    this.#listeners = parts.listeners;
    this.#sent = parts.sent;
    this.#onNetwork = parts.onNetwork;
    this.environment = parts.environment;
  }

  /** Call it before the first command starts, so that nobody else can be at the proxy's address. Errors: `sandbox.*`. */
  static async open(
    link: RunnerLink,
    { onEgress, onNetwork, inspection: rules, plan, signal, ...options }: SandboxEgressOptions,
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
    const inspection = rules && looksIntoRequests(rules) ? await createInspection(rules) : undefined;
    const canaries = rules?.canaries ?? [];
    const sent: EgressParts["sent"] = { error: null, listeners: [] };
    const onCanary: OnCanary = (canary) => {
      const error = canarySent(canary);
      sent.error = error;
      for (const listener of sent.listeners) listener(error);
    };
    const egress = await openEgress(network, { ...options, onAttempt, inspection, canaries, onCanary });
    await plant(link, canaries);
    const trust = inspection ? await trustIn(link, inspection, { plan, signal }) : {};
    const placeholders = rules?.secrets.map(({ name, placeholder }) => [name, placeholder]) ?? [];
    const others = [...(rules?.awsSecrets ?? []), ...canaries].map(({ variables }) => variables);
    return new SandboxEgress({
      ...{ egress, notes, calls, listeners, sent, onNetwork },
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
async function createInspection(options: InspectionOptions): Promise<Inspection> {
  const { Inspection } = await import("../../egress/inspection.js");
  return await Inspection.create(options);
}

function looksIntoRequests({ rules, secrets, awsSecrets = [] }: InspectionOptions): boolean {
  return rules.length + secrets.length + awsSecrets.length > 0;
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
  const { trustInside } = await import("./trust/trust-inside.js");
  return await trustInside(link, certificate, options);
}
