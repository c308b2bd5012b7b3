import { basename, join } from "node:path";
import { Writable } from "node:stream";
import type {
  AgentListener,
  Conversation,
  EarlierSession,
  PreparedSession,
  ResponseItem,
} from "../../agent/index.js";
import { isPrompt, messageText, openConversation, prepareSession } from "../../agent/index.js";
import type { CliContext } from "../../command/index.js";
import { sessionHost, write } from "../../command/index.js";
import { BrigError } from "../../errors.js";
import { neutralise, neutraliseLine } from "../../lib/terminal/terminal.js";
import { pause } from "../../lib/time/pause.js";
import { imageFiles, readImages } from "../setup/run-input.js";
import { runSettings, type SessionFlags } from "../setup/session-flags.js";
import { screenApprover, screenUser } from "./ask-on-screen.js";
import { type ConversationActions, Driver } from "./driver.js";
import type { Keyboard } from "./input/keyboard.js";
import { PromptHistory } from "./input/prompt-history.js";
import { PendingQuestions } from "./question.js";
import { runSlashCommand } from "./run-slash-command.js";
import { closingText, footerParts, headingBlock, toolRows } from "./screen/banner.js";
import { type Block, messageBlocks } from "./screen/block.js";
import { piecesOf } from "./screen/message-pieces.js";
import { readPicture } from "./screen/picture.js";
import { hasBusyAgents, initialScreen, type ScreenState, showQuestion } from "./screen/screen-state.js";
import { ScreenStore } from "./screen/screen-store.js";
import { plural } from "./screen/styled-line.js";
import { screenSize, TerminalScreen } from "./screen/terminal-screen.js";
import { EventNeutraliser, failureNotice } from "./screen/view-event.js";
import { reduceView, withBlock } from "./screen/view-state.js";

/** How long an interrupted turn may take to end before its sandbox is closed. */
const SETTLE_MS = 5000;

export interface ConversationInput {
  flags: SessionFlags;
  context: CliContext;
  /** Open already; the caller releases it. */
  keyboard: Keyboard;
  /** The first message. Default: the person types one. */
  prompt?: string | undefined;
  /** The session to continue. Default: a new session. */
  earlier?: EarlierSession | undefined;
}

/** Runs a conversation until the person ends it. Always restores the terminal. */
export async function runConversation(input: ConversationInput): Promise<void> {
  const { flags, context, earlier } = input;
  const settings = await runSettings(flags, context);
  const images = await readImages(flags.image ?? [], context);
  const screen = createScreen(context);
  const { store, questions, show } = screen;
  // Output on stderr would disturb the screen, so it is shown on the screen.
  const host = sessionHost({ ...context, stderr: asNotices(show) }, flags);
  const asking = { questions, show, columns: () => store.read().size.columns };
  const setup = await prepareSession(
    { ...settings, hasManyTurns: true, earlier },
    { ...host, user: screenUser(asking), approver: screenApprover(asking) },
  );
  context.signal.throwIfAborted();
  show(headingBlock(setup));
  for (const block of earlierBlocks(earlier?.items ?? [])) show(block);
  const history = await openHistory(setup, context);
  const conversation = await converse({ ...screen, ...input, setup, history, images });
  await write(context.stdout, closingText(conversation, setup));
  if (context.signal.aborted) throw context.signal.reason;
}

async function openHistory(
  { config, options: { threadId } }: PreparedSession,
  { environment }: CliContext,
): Promise<PromptHistory> {
  const isKept = config.history?.persistence !== "none";
  const file = isKept ? join(environment.brigHome, "history.jsonl") : null;
  return await PromptHistory.open(file, { threadId, now: () => new Date() });
}

interface ScreenParts {
  store: ScreenStore;
  questions: PendingQuestions;
  show(block: Block): void;
}

interface Session extends ScreenParts, ConversationInput {
  setup: PreparedSession;
  history: PromptHistory;
  images: readonly string[];
}

function createScreen({ stdout }: CliContext): ScreenParts {
  const store = new ScreenStore(initialScreen(screenSize(stdout), Date.now()));
  return {
    store,
    questions: new PendingQuestions(
      (question) => store.update((state) => showQuestion(state, question)),
      () => Date.now(),
    ),
    show: (block) => store.update((state) => ({ ...state, view: withBlock(state.view, block) })),
  };
}

/** Opens everything, waits for the person to leave, and closes everything. */
async function converse(session: Session): Promise<Conversation> {
  const { context, setup, store, keyboard } = session;
  const conversation = openConversation({ ...setup.options, onEvent: listener(store, setup) });
  const screen = new TerminalScreen(store, context);
  const setStage = (stage: ScreenState["stage"]) =>
    store.update((state) => ({ ...state, stage }), { isUrgent: true });
  try {
    await drive(session, { conversation, screen });
  } finally {
    keyboard.release();
    setStage("leaving");
    try {
      await conversation.close();
    } finally {
      setStage("left");
      screen.close();
    }
    await session.history.close();
  }
  return conversation;
}

/** Returns when the session ends or the terminal is gone. Rejects when the screen cannot be drawn. */
async function drive(
  session: Session,
  { conversation, screen }: { conversation: Conversation; screen: TerminalScreen },
): Promise<void> {
  const { store, questions, history, context, keyboard, prompt } = session;
  const actions = createActions(session, conversation);
  const driver = new Driver({ store, questions, history, actions, screen, now: () => Date.now() });
  if (context.signal.aborted) driver.leave();
  context.signal.addEventListener("abort", () => driver.leave(), { once: true });
  showStart(session, conversation);
  if (prompt !== undefined) driver.submit(prompt);
  keyboard.listen(driver);
  await Promise.race([driver.left, screen.broken]);
  await Promise.race([driver.settled(), pause(SETTLE_MS)]);
}

function listener(store: ScreenStore, { setting: { cwd } }: PreparedSession): AgentListener {
  const neutraliser = new EventNeutraliser(() => Date.now(), { cwd });
  return (event) => {
    for (const shown of neutraliser.translate(event))
      store.update((state) => ({ ...state, now: Date.now(), view: reduceView(state.view, shown) }));
  };
}

function showStart(session: Session, conversation: Conversation): void {
  const { store, setup, show } = session;
  const open = () =>
    store.update((state) => (state.stage === "starting" ? { ...state, stage: "open" } : state));
  store.update((state) => ({ ...state, stage: "starting", footer: footerParts(conversation, setup) }));
  conversation.sandbox.then(open, (error: unknown) => {
    open();
    if (error instanceof BrigError) show(failureNotice(error));
  });
}

function createActions(session: Session, conversation: Conversation): ConversationActions {
  const { store, setup, show, questions, context } = session;
  let { images } = session;
  const showNewTrouble = createTroubleNotice(session);
  const showFooter = () => store.update((state) => ({ ...state, footer: footerParts(conversation, setup) }));
  return {
    async runTurn(prompt, signal) {
      const first = images;
      images = [];
      for (const block of pictureBlocks(first, session.flags.image ?? [])) show(block);
      await conversation.runTurn({ prompt, images: first, signal });
      showNewTrouble();
      showFooter();
    },
    interruptAgents: () => conversation.interruptAgents(),
    async runCommand(command, call) {
      await runSlashCommand(command, call, {
        conversation,
        setup,
        questions,
        show,
        hasBusyAgents: () => hasBusyAgents(store.read()),
        onNewSandbox: () => showStart(session, conversation),
        describeTools: () => toolRows(setup, context),
      });
      showFooter();
    },
  };
}

/** The pictures that go with the first message, from the files that the flags name. */
function pictureBlocks(images: readonly string[], lists: readonly string[]): Block[] {
  const names = imageFiles(lists).map((file) => neutraliseLine(basename(file)));
  return images.flatMap((image, index) => {
    const picture = readPicture(image, names[index] ?? "");
    return picture === null ? [] : [{ kind: "picture", picture }];
  });
}

/** Returns a function that shows a problem with the session file, but not the same problem twice. */
function createTroubleNotice({ setup, show }: Session): () => void {
  let known: string | null = null;
  return () => {
    const trouble = setup.options.session?.trouble ?? null;
    if (trouble !== null && trouble !== known)
      show({ kind: "notice", tone: "failure", text: neutralise(trouble) });
    known = trouble;
  };
}

/** A stream that shows what is written to it as notices on the screen. */
function asNotices(show: (block: Block) => void): Writable {
  return new Writable({
    decodeStrings: false,
    write(chunk: string | Uint8Array, _encoding, done) {
      const text = neutralise(typeof chunk === "string" ? chunk : Buffer.from(chunk).toString("utf8")).trim();
      if (text !== "") show({ kind: "notice", tone: "warning", text });
      done();
    },
  });
}

const SHOWN_MESSAGES = 6;

function earlierBlocks(items: readonly ResponseItem[]): Block[] {
  const messages = items.map(blocksOf).filter((blocks) => blocks.length > 0);
  if (messages.length === 0) return [];
  const hidden = messages.length - SHOWN_MESSAGES;
  const text = hidden > 0 ? `resumed; the model also has ${plural(hidden, "earlier message")}` : "resumed";
  return [{ kind: "notice", tone: "quiet", text }, ...messages.slice(-SHOWN_MESSAGES).flat()];
}

function blocksOf(item: ResponseItem): Block[] {
  if (item.type !== "message" || (item.role !== "assistant" && !isPrompt(item))) return [];
  const text = neutralise(messageText(item)).trim();
  if (text === "") return [];
  return item.role === "assistant" ? messageBlocks(piecesOf(text)) : [{ kind: "prompt", text }];
}
