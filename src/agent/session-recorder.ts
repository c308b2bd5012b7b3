import { isBrigError } from "../errors.js";
import type { AskAboutHost } from "../sandbox/index.js";
import { describeNetwork } from "../sandbox/index.js";
import { readVersion } from "../version.js";
import type { AgentSandbox } from "./agent-sandbox.js";
import { EgressRecorder } from "./egress/egress-recorder.js";
import type { ResponseItem } from "./model/items.js";
import type { ModelClient } from "./model/model-client.js";
import { describeTree, recordedTreeLimits, treeRecord } from "./session/read/session-tree.js";
import { Receipts } from "./session/receipts.js";
import type { SessionSetting } from "./session/setting.js";
import {
  type AgentOrigin,
  egressRecord,
  modelRecord,
  receiptRecord,
  responseItem,
  sandboxRecord,
  sessionMeta,
  setupRecord,
} from "./session/write/session-records.js";
import type { SandboxStart, SessionSandbox } from "./session-sandbox.js";
import type { EndedSetup, SessionSetup } from "./setup/setup-options.js";
import type { Transcript } from "./turn/transcript.js";

/** Limit for the output of a set-up that is kept until the session begins. */
const MAX_EARLY_BYTES = 64 * 1024;

interface SessionFacts {
  threadId: string;
  provider: string;
  /** The branch of the workspace; null if it is not known. */
  branch: string | null;
  /** Whether the session file already starts with a `session_meta`. */
  isContinued: boolean;
  /** The agent whose session this is; null for a session that is not an agent's. */
  agent: AgentOrigin | null;
  /** Items that the session begins with, which its file does not contain yet. */
  copiedItems: readonly ResponseItem[];
  /** Messages for the model before the first prompt. */
  openingItems: readonly ResponseItem[];
  recordsTree: boolean;
  now: () => Date;
}

/** Records and reports the session's start, its sandboxes, and what it leaves behind. */
export class SessionRecorder {
  readonly #transcript: Transcript;
  #facts: SessionFacts;
  readonly #receipts = new Receipts();
  readonly #egress: EgressRecorder;
  #hasBegun = false;
  /** Reports about the set-up that are made once the session begins. */
  #early: (() => void)[] = [];
  /** The size of the set-up's output until then. */
  #earlyBytes = 0;

  constructor(transcript: Transcript, facts: SessionFacts) {
    this.#transcript = transcript;
    this.#facts = facts;
    this.#egress = new EgressRecorder(transcript);
  }

  /** A session begins with its first turn; nothing is written before that. */
  get hasBegun(): boolean {
    return this.#hasBegun;
  }

  begin(
    { started }: SessionSandbox,
    { setting, instructions }: { setting: SessionSetting; instructions: string },
  ): void {
    if (this.#hasBegun) return;
    const { threadId, provider, branch, isContinued, agent, copiedItems, openingItems, now } = this.#facts;
    const meta = { threadId, agent, cwd: setting.cwd, version: readVersion(), provider, branch };
    if (!isContinued) this.#transcript.keep(sessionMeta({ ...meta, instructions, startedAt: now() }));
    for (const item of copiedItems) this.#transcript.keep(responseItem(item));
    this.#hasBegun = true;
    const { sessionFile } = this.#transcript;
    this.#transcript.emit({ kind: "session-started", threadId, sessionFile });
    for (const say of this.#early.splice(0)) say();
    const { network } = setting;
    if (started !== null) this.started(started, network);
    this.#egress.begin();
    for (const item of openingItems) this.#transcript.recordItem(item);
  }

  /** Records which model the session goes on with, and a new session as soon as it begins. */
  changeModel(model: ModelClient): void {
    this.#facts = { ...this.#facts, provider: model.provider };
    const record = () => this.#transcript.keep(modelRecord(model));
    if (this.#facts.isContinued) record();
    else this.#onceBegun(record);
  }

  /** Records from now on what programs of the sandbox try to reach. */
  settingUp(sandbox: AgentSandbox, { argv, network }: SessionSetup): void {
    this.#egress.watch(sandbox);
    this.#onceBegun(() => this.#transcript.emit({ kind: "setup-started", argv, network }));
  }

  /** Reports output of the set-up. Before the session begins, not all of it is reported: the end of the set-up has it. */
  setupOutput(chunk: Uint8Array): void {
    if (!this.#hasBegun) this.#earlyBytes += chunk.length;
    if (!this.#hasBegun && this.#earlyBytes > MAX_EARLY_BYTES) return;
    this.#onceBegun(() => this.#transcript.emit({ kind: "setup-output", chunk }));
  }

  /** Null if the set-up was interrupted, or could not run. */
  setUp({ id: sandboxId }: AgentSandbox, { argv, network }: SessionSetup, ended: EndedSetup | null): void {
    const { exitCode = null, durationMs = null, output = null } = ended ?? {};
    this.#onceBegun(() => {
      this.#transcript.keep(
        setupRecord({ sandboxId, argv, network, exitCode, durationMs, output: output ?? "" }),
      );
      this.#transcript.emit({ kind: "setup-ended", exitCode, durationMs, output });
    });
  }

  #onceBegun(say: () => void): void {
    if (this.#hasBegun) say();
    else this.#early.push(say);
  }

  /** Call this with a sandbox that has run nothing yet, except for its set-up. It may replace one whose allow-list was changed. */
  watch(
    sandbox: AgentSandbox,
    {
      ask,
      changedNetwork,
    }: { ask: AskAboutHost | undefined; changedNetwork: SessionSetting["network"] | null },
  ): void {
    if (changedNetwork?.kind === "allowlist") sandbox.setNetwork?.(describeNetwork(changedNetwork));
    this.#egress.watch(sandbox, { ask });
  }

  /** Writes down attempts of programs that were only counted so far. */
  async flushEgress(): Promise<void> {
    await this.#egress.flush();
  }

  /** Error: `sandbox.canary-sent`. */
  async requireNoCanarySent(): Promise<void> {
    await this.#egress.requireNoCanarySent();
  }

  /** A sandbox that starts before the session has begun is reported by `begin`. */
  started({ sandbox, startMs, readyAt }: SandboxStart, network: SessionSetting["network"]): void {
    if (!this.#hasBegun) return;
    const { id, image, proof, snapshotId } = sandbox;
    this.#transcript.keep(sandboxRecord({ id, image, proof, startMs, snapshotId }));
    if (network.kind !== "none") this.#transcript.keep(egressRecord(id, network));
    this.#transcript.emit({ kind: "sandbox-ready", sandboxId: id, startMs, readyAt });
  }

  escalated({ id, image, proof }: AgentSandbox, startMs: number): void {
    this.#transcript.keep(sandboxRecord({ id, image, proof, startMs, isEscalated: true }));
    this.#transcript.keep(egressRecord(id, { kind: "full" }));
  }

  /** Adds what a sandbox's `close` resolved to. */
  addReceipt(receipt: unknown): void {
    this.#receipts.add(receipt);
  }

  /** A sandbox that failed to close is a warning, because the session's work is done. */
  closed(closings: readonly PromiseSettledResult<unknown>[]): void {
    for (const closing of closings) {
      if (closing.status === "fulfilled") {
        this.addReceipt(closing.value);
        continue;
      }
      if (!isBrigError(closing.reason)) throw closing.reason;
      const { message, hint } = closing.reason;
      this.#transcript.emit({
        kind: "warning",
        message: hint === undefined ? message : `${message}\n${hint}`,
      });
    }
  }

  receipt(): void {
    const receipt = this.#receipts.all;
    if (receipt === null || !this.#hasBegun) return;
    this.#transcript.keep(receiptRecord(receipt));
    this.#transcript.emit({ kind: "receipt", receipt });
  }

  /** Describes what the session leaves in its directory, for `brig replay` to compare with. */
  async tree({ started, isLost }: SessionSandbox, { cwd }: SessionSetting): Promise<void> {
    const isWanted = this.#facts.recordsTree && this.#transcript.sessionFile !== null && this.#hasBegun;
    if (!isWanted || started === null || isLost) return;
    const tree = await describeTree(started.sandbox, cwd, { limits: recordedTreeLimits });
    this.#transcript.keep(treeRecord(tree));
  }
}
