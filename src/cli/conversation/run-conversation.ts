import { join } from "node:path";
import { Writable } from "node:stream";
import { openConversation } from "../../agent/conversation.js";
import type { Conversation } from "../../agent/conversation-options.js";
import type { AgentListener } from "../../agent/turn/events.js";
import { BrigError } from "../../errors.js";
import { neutralise } from "../../lib/terminal/terminal.js";
import { pause } from "../../lib/time/pause.js";
import type { CliContext } from "../context.js";
import { write } from "../render.js";
import type { AgentFlags } from "../setup/agent-flags.js";
import { type AgentSetup, type EarlierSession, prepareAgent } from "../setup/agent-setup.js";
import { readImages } from "../setup/run-input.js";
import { approverAtScreen, userAtScreen } from "./ask-in-place.js";
import { Driver, type Work } from "./driver.js";
import type { Keyboard } from "./input/keyboard.js";
import { PromptHistory } from "./input/prompt-history.js";
import { QuestionDesk } from "./question.js";
import { farewell, footerParts, headingBlock, toolRows } from "./screen/banner.js";
import type { Block } from "./screen/block.js";
import { earlierBlocks } from "./screen/earlier-blocks.js";
import { initialScreen, type ScreenState, showQuestion } from "./screen/screen-state.js";
import { ScreenStore } from "./screen/screen-store.js";
import { openTerminalScreen, screenSize, type TerminalScreen } from "./screen/terminal-screen.js";
import { EventNeutraliser, failureNotice } from "./screen/view-event.js";
import { reduceView, withBlock } from "./screen/view-state.js";
import { runSlashCommand } from "./slash-work.js";

/** A turn that was told to end has so long before its sandbox is closed under it. */
const REST_MS = 5000;

export interface ConversationUse {
  flags: AgentFlags;
  context: CliContext;
  /** Already taken; whoever took it releases it. */
  keyboard: Keyboard;
  /** What the conversation begins with. Default: the person says it. */
  prompt?: string | undefined;
  /** Default: a new session. */
  earlier?: EarlierSession | undefined;
}

/** A conversation on the terminal, until the person ends it. The terminal is put back as it was on every way out. */
export async function runConversation(use: ConversationUse): Promise<void> {
  const { flags, context, earlier } = use;
  const images = await readImages(flags.image ?? [], context);
  const desk = openDesk(context);
  // Whatever is said besides the screen would be drawn over.
  const aside = { ...context, stderr: noticesInstead(desk.show) };
  const asking = { desk: desk.questions, show: desk.show, columns: () => desk.store.read().size.columns };
  const setup = await prepareAgent(flags, aside, {
    hasManyTurns: true,
    user: userAtScreen(asking),
    approver: approverAtScreen(asking),
    earlier,
  });
  context.signal.throwIfAborted();
  desk.show(headingBlock(setup));
  for (const block of earlierBlocks(earlier?.items ?? [])) desk.show(block);
  const history = await openHistory(setup, context);
  const session = { ...desk, ...use, setup, history, images };
  const conversation = await converse(session);
  await write(context.stdout, farewell(conversation, setup));
  if (context.signal.aborted) throw context.signal.reason;
}

async function openHistory(
  { config, threadId }: AgentSetup,
  { environment }: CliContext,
): Promise<PromptHistory> {
  const isKept = config.history?.persistence !== "none";
  const file = isKept ? join(environment.brigHome, "history.jsonl") : null;
  return await PromptHistory.open(file, { threadId, now: () => new Date() });
}

/** What is on the screen, and what waits for an answer. */
interface Desk {
  store: ScreenStore;
  questions: QuestionDesk;
  show(block: Block): void;
}

interface Session extends Desk, ConversationUse {
  setup: AgentSetup;
  history: PromptHistory;
  /** For the first message. */
  images: readonly string[];
}

function openDesk({ stdout }: CliContext): Desk {
  const store = new ScreenStore(initialScreen(screenSize(stdout), Date.now()));
  return {
    store,
    questions: new QuestionDesk(
      (question) => store.update((state) => showQuestion(state, question)),
      () => Date.now(),
    ),
    show: (block) => store.update((state) => ({ ...state, view: withBlock(state.view, block) })),
  };
}

/** Opens everything, waits for the person to leave, and closes everything. */
async function converse(session: Session): Promise<Conversation> {
  const { context, setup, store, keyboard } = session;
  // What draws is loaded while the container starts.
  const opening = openTerminalScreen(store, { context, keyboard });
  const conversation = openConversation({ ...setup.options, onEvent: listener(store, setup) });
  const screen = await opening.catch(async (error: unknown) => {
    await conversation.close();
    throw error;
  });
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
      await screen.close();
    }
    await session.history.close();
  }
  return conversation;
}

interface Stage {
  conversation: Conversation;
  screen: TerminalScreen;
}

/** Until the person leaves, the terminal does, or something is broken. */
async function drive(session: Session, { conversation, screen }: Stage): Promise<void> {
  const { store, questions, history, context, keyboard, prompt } = session;
  const work = workOf(session, conversation);
  const driver = new Driver({ store, desk: questions, history, work, screen, now: () => Date.now() });
  if (context.signal.aborted) driver.leave();
  context.signal.addEventListener("abort", () => driver.leave(), { once: true });
  showStart(session, conversation);
  if (prompt !== undefined) driver.submit(prompt);
  keyboard.listen(driver);
  await Promise.race([driver.left, screen.broken]);
  // What still runs gets a moment to end by itself.
  await Promise.race([driver.rest(), pause(REST_MS)]);
}

function listener(store: ScreenStore, { setting: { cwd } }: AgentSetup): AgentListener {
  const neutraliser = new EventNeutraliser(() => Date.now(), { cwd });
  return (event) => {
    for (const shown of neutraliser.translate(event))
      store.update((state) => ({ ...state, now: Date.now(), view: reduceView(state.view, shown) }));
  };
}

/** Says when the sandbox is there, or why it is not. */
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

function workOf(session: Session, conversation: Conversation): Work {
  const { store, setup, show, questions, context } = session;
  let { images } = session;
  const showTrouble = troubleWatch(session);
  const showFooter = () => store.update((state) => ({ ...state, footer: footerParts(conversation, setup) }));
  return {
    async runTurn(prompt, signal) {
      const first = images;
      images = [];
      await conversation.runTurn({ prompt, images: first, signal });
      showTrouble();
      showFooter();
    },
    async runCommand(command, call) {
      await runSlashCommand(command, call, {
        conversation,
        setup,
        desk: questions,
        show,
        onNewSandbox: () => showStart(session, conversation),
        describeTools: () => toolRows(setup, context),
      });
      showFooter();
    },
  };
}

/** Says once what is wrong with the record of the session. */
function troubleWatch({ setup, show }: Session): () => void {
  let known: string | null = null;
  return () => {
    const trouble = setup.options.session?.trouble ?? null;
    if (trouble !== null && trouble !== known)
      show({ kind: "notice", tone: "failure", text: neutralise(trouble) });
    known = trouble;
  };
}

/** A place to write to whose lines appear on the screen. */
function noticesInstead(show: (block: Block) => void): Writable {
  return new Writable({
    decodeStrings: false,
    write(chunk: string | Uint8Array, _encoding, done) {
      const text = neutralise(typeof chunk === "string" ? chunk : Buffer.from(chunk).toString("utf8")).trim();
      if (text !== "") show({ kind: "notice", tone: "warning", text });
      done();
    },
  });
}
