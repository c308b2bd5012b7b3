import { existsSync } from "node:fs";
import type {
  AgentListener,
  AgentSettings,
  Conversation,
  EarlierSession,
  ModelChange,
  ModelChoice,
  PreparedSession,
  ResponseItem,
  SessionHost,
} from "../../agent/index.js";
import {
  isPrompt,
  messageText,
  openConversation,
  openEarlierSession,
  prepareSession,
} from "../../agent/index.js";
import type { CliContext } from "../../command/index.js";
import { BrigError } from "../../errors.js";
import { neutralise } from "../../lib/terminal/terminal.js";
import { describeNetwork, isSandboxMode } from "../../sandbox/index.js";
import { withSessionDirectory } from "../sessions/chosen-session.js";
import { runSettings, type SessionFlags } from "../setup/session-flags.js";
import { footerParts, headingBlock, usageLines } from "./screen/banner.js";
import { type Block, messageBlocks, notice } from "./screen/block.js";
import { piecesOf } from "./screen/message-pieces.js";
import type { ScreenState } from "./screen/screen-state.js";
import { plural } from "./screen/styled-line.js";
import { EventNeutraliser, failureNotice } from "./screen/view-event.js";
import { initialView, reduceView } from "./screen/view-state.js";
import type { ScreenParts } from "./screen-parts.js";

interface SwitchParts extends ScreenParts {
  flags: SessionFlags;
  context: CliContext;
  host: SessionHost;
}

/** The session that a conversation shows. Another one can take its place, on the same screen. */
export class SessionSwitch {
  readonly #parts: SwitchParts;
  #setup: PreparedSession;
  #conversation: Conversation;
  /** The model that the person has chosen; null for that of the settings. */
  #choice: ModelChoice | null = null;
  #isLeft = false;
  #isEnded = false;
  #replacing: Promise<void> = Promise.resolve();

  private constructor(parts: SwitchParts, setup: PreparedSession, items: readonly ResponseItem[]) {
    this.#parts = parts;
    this.#setup = setup;
    this.#conversation = openShown(setup, parts);
    this.#showBeginning(items);
  }

  /** Prepares the first session. The sandbox starts with `begin`. */
  static async prepare(
    parts: SwitchParts,
    earlier: EarlierSession | undefined,
  ): Promise<{ begin(): SessionSwitch; setup: PreparedSession }> {
    const { flags, context, host } = parts;
    const setup = await prepare(await runSettings(flags, context), host, earlier);
    return { setup, begin: () => new SessionSwitch(parts, setup, earlier?.items ?? []) };
  }

  get setup(): PreparedSession {
    return this.#setup;
  }

  get conversation(): Conversation {
    return this.#conversation;
  }

  /** Ends the session, and begins an empty one in the same settings and a fresh sandbox. */
  async startNew({ clears, signal }: { clears: boolean; signal: AbortSignal }): Promise<void> {
    const { flags, context, host } = this.#parts;
    const settings = this.#asChanged(await runSettings(flags, context));
    const setup = await prepare(settings, host, undefined);
    const choice = this.#choice;
    const change = choice === null ? null : ((await setup.otherModels?.open(choice)) ?? null);
    await this.#replace(setup, { clears, signal, items: [], change });
  }

  /** Ends the session, and goes on with the one in this file. Errors: those of opening it; then nothing has ended. */
  async goOnWith(path: string, { signal }: { signal: AbortSignal }): Promise<void> {
    const { flags, context, host } = this.#parts;
    const { recorded, earlier } = await openEarlierSession(path, host);
    let setup: PreparedSession;
    try {
      const own = await withSessionDirectory(recorded, flags, { cwd: context.cwd, warn: host.warn });
      setup = await prepare(await runSettings(own, context), host, earlier);
    } catch (error) {
      earlier.log.close();
      throw error;
    }
    await this.#replace(setup, { clears: false, signal, items: earlier.items, change: null });
  }

  /** Goes on with another model. Errors: those of opening it; then nothing has changed. */
  async takeModel(choice: ModelChoice): Promise<void> {
    const { otherModels } = this.#setup;
    if (otherModels === null) throw new TypeError("a script has no other models");
    this.#conversation.changeModel(await otherModels.open(choice));
    this.#choice = choice;
    this.showFooter();
  }

  /** Shows events on the screen, for a conversation beside that of the session. */
  listener(): AgentListener {
    return listener(this.#parts.store, this.#setup);
  }

  showFooter(): void {
    const footer = footerParts(this.#conversation);
    this.#parts.store.update((state) => ({ ...state, footer }));
  }

  /** Shows that a sandbox is starting, until it has. */
  showStart(): void {
    const { store, show } = this.#parts;
    const { sandbox } = this.#conversation;
    const open = () =>
      store.update((state) => (state.stage === "starting" ? { ...state, stage: "open" } : state));
    this.#setStage("starting");
    this.showFooter();
    sandbox.then(open, (error: unknown) => {
      open();
      if (error instanceof BrigError) show(failureNotice(error));
    });
  }

  /** Ends the session, and resolves when nothing of it is left. No other one begins after this. */
  async close(): Promise<void> {
    this.#isLeft = true;
    this.#setStage("leaving");
    await this.#replacing;
    if (!this.#isEnded) await this.#conversation.close();
  }

  /** The settings with what the person has changed since. */
  #asChanged(settings: AgentSettings): AgentSettings {
    const { sandboxMode: mode, network } = this.#conversation.setting;
    const { setting: before } = this.#setup;
    const sandbox = { ...settings.sandbox };
    if (mode !== before.sandboxMode && isSandboxMode(mode))
      Object.assign(sandbox, { mode, policyFile: undefined });
    if (network.kind === "allowlist" && network.learns !== true && network !== before.network)
      sandbox.network = describeNetwork({ ...network, hosts: [...network.hosts] });
    return { ...settings, sandbox };
  }

  async #replace(
    setup: PreparedSession,
    { signal, ...next }: NextSession & { signal: AbortSignal },
  ): Promise<void> {
    if (signal.aborted || this.#isLeft) return await discard(setup);
    const replacing = this.#end(setup, next);
    this.#replacing = replacing.catch(() => undefined);
    await replacing;
  }

  async #end(setup: PreparedSession, { clears, items, change }: NextSession): Promise<void> {
    const { store, show } = this.#parts;
    const ended = this.#conversation;
    this.#setStage("leaving");
    try {
      await ended.close();
    } catch (error) {
      if (!(error instanceof BrigError)) throw error;
      show(failureNotice(error));
    }
    store.update((state) => withoutSession(state, { clears }));
    for (const line of closingLines(ended)) show(notice(line));
    if (this.#isLeft) {
      this.#isEnded = true;
      return await discard(setup);
    }
    this.#setup = setup;
    this.#conversation = openShown(setup, this.#parts);
    if (change === null) this.#choice = null;
    else this.#conversation.changeModel(change);
    this.#showBeginning(items);
  }

  #showBeginning(items: readonly ResponseItem[]): void {
    const { show } = this.#parts;
    show(headingBlock(this.#conversation));
    for (const block of earlierBlocks(items)) show(block);
    this.showStart();
  }

  #setStage(stage: ScreenState["stage"]): void {
    this.#parts.store.update((state) => ({ ...state, stage }), { isUrgent: true });
  }
}

/** The session that takes the place of another one. */
interface NextSession {
  /** Whether nothing of what was shown so far stays on the screen. */
  clears: boolean;
  /** What was said in it before. */
  items: readonly ResponseItem[];
  /** The model that takes the place of the one it was prepared with. */
  change: ModelChange | null;
}

function openShown(setup: PreparedSession, { store }: SwitchParts): Conversation {
  return openConversation({ ...setup.options, onEvent: listener(store, setup) });
}

async function prepare(
  settings: AgentSettings,
  host: SessionHost,
  earlier: EarlierSession | undefined,
): Promise<PreparedSession> {
  return await prepareSession({ ...settings, hasManyTurns: true, earlier }, host);
}

/** Gives up a session of which no conversation was opened. */
async function discard({ options }: PreparedSession): Promise<void> {
  options.session?.close();
  await options.onClose?.();
}

function listener(store: ScreenParts["store"], { setting: { cwd } }: PreparedSession): AgentListener {
  const neutraliser = new EventNeutraliser(() => Date.now(), { cwd });
  return (event) => {
    for (const shown of neutraliser.translate(event))
      store.update((state) => ({ ...state, now: Date.now(), view: reduceView(state.view, shown) }));
  };
}

function withoutSession(state: ScreenState, { clears }: { clears: boolean }): ScreenState {
  const view = { ...initialView, finished: clears ? [] : state.view.finished };
  if (!clears) return { ...state, view };
  return { ...state, view, painted: { generation: state.painted.generation + 1, from: 0 } };
}

/** What is said of a session that has ended: nothing if nothing was said in it. */
function closingLines(conversation: Conversation): string[] {
  const { sessionFile, threadId } = conversation;
  const isKept = sessionFile !== null && existsSync(sessionFile);
  return [...usageLines(conversation), ...(isKept ? [`to continue: brig resume ${threadId}`] : [])];
}

const SHOWN_MESSAGES = 6;

function earlierBlocks(items: readonly ResponseItem[]): Block[] {
  const messages = items.map(blocksOf).filter((blocks) => blocks.length > 0);
  if (messages.length === 0) return [];
  const hidden = messages.length - SHOWN_MESSAGES;
  const text = hidden > 0 ? `resumed; the model also has ${plural(hidden, "earlier message")}` : "resumed";
  return [notice(text), ...messages.slice(-SHOWN_MESSAGES).flat()];
}

function blocksOf(item: ResponseItem): Block[] {
  if (item.type !== "message" || (item.role !== "assistant" && !isPrompt(item))) return [];
  const text = neutralise(messageText(item)).trim();
  if (text === "") return [];
  return item.role === "assistant" ? messageBlocks(piecesOf(text)) : [{ kind: "prompt", text }];
}
