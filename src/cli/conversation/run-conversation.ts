import { basename, join } from "node:path";
import { Writable } from "node:stream";
import type { EarlierSession, PreparedSession } from "../../agent/index.js";
import type { CliContext } from "../../command/index.js";
import { CopiedText, sessionHost, write } from "../../command/index.js";
import { isBrigError } from "../../errors.js";
import { neutralise, neutraliseLine } from "../../lib/terminal/terminal.js";
import { pause } from "../../lib/time/pause.js";
import type { OnCopied } from "../../sandbox/index.js";
import { imageFiles, readImageFiles, readImages } from "../setup/run-input.js";
import type { SessionFlags } from "../setup/session-flags.js";
import { screenApprover, screenUser } from "./ask-on-screen.js";
import { Completer } from "./completer.js";
import { type ConversationActions, Driver } from "./driver.js";
import { draftOf } from "./input/draft.js";
import type { Keyboard } from "./input/keyboard.js";
import { PromptHistory } from "./input/prompt-history.js";
import { pastedPictures } from "./pasted-pictures.js";
import { runSlashCommand } from "./run-slash-command.js";
import { closingText, toolRows } from "./screen/banner.js";
import type { Block } from "./screen/block.js";
import { readPicture } from "./screen/picture.js";
import { hasBusyAgents } from "./screen/screen-state.js";
import { TerminalScreen } from "./screen/terminal-screen.js";
import { failureNotice } from "./screen/view-event.js";
import { createScreen, type ScreenParts } from "./screen-parts.js";
import { SessionSwitch } from "./session-switch.js";

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
  const images = await readImages(flags.image ?? [], context);
  const screen = createScreen(context);
  const { store, questions, show } = screen;
  // Output on stderr would disturb the screen, so it is shown on the screen.
  const shownHost = sessionHost({ ...context, stderr: asNotices(show) }, flags);
  const asking = { questions, show, columns: () => store.read().size.columns };
  const onCopied = shownCopies(store);
  const host = { ...shownHost, onCopied, user: screenUser(asking), approver: screenApprover(asking) };
  const first = await SessionSwitch.prepare({ ...screen, flags, context, host }, earlier);
  context.signal.throwIfAborted();
  let sessions: SessionSwitch | null = null;
  const history = await openHistory(first.setup, context, () => sessions?.conversation.threadId);
  sessions = first.begin();
  await converse({ ...screen, ...input, sessions, history, images });
  await write(context.stdout, closingText(sessions.conversation, sessions.setup));
  if (context.signal.aborted) throw context.signal.reason;
}

/** Shows while a session ends how much of its changes is kept. */
function shownCopies(store: ScreenParts["store"]): OnCopied {
  const text = new CopiedText();
  return (copied) => {
    text.onCopied(copied);
    store.update((state) => ({ ...state, copied: text.at(performance.now()) }));
  };
}

const REDRAW_MS = 500;

/** Shows while this runs what it does, for how long already, and how many of the changed files are copied. */
async function showWork<T>(
  store: ScreenParts["store"],
  { what, signal, run }: { what: string; signal: AbortSignal; run: (onCopied: OnCopied) => Promise<T> },
): Promise<T> {
  const text = new CopiedText();
  const startedAt = Date.now();
  const timer = setInterval(() => {
    const work = { what, startedAt, isStopping: signal.aborted };
    const copied = text.at(performance.now());
    store.update((state) => ({ ...state, now: Date.now(), work, copied }));
  }, REDRAW_MS);
  try {
    return await run(text.onCopied);
  } finally {
    clearInterval(timer);
    store.update((state) => ({ ...state, work: null, copied: null }));
  }
}

async function openHistory(
  { config, options }: PreparedSession,
  { environment }: CliContext,
  threadId: () => string | undefined,
): Promise<PromptHistory> {
  const isKept = config.history?.persistence !== "none";
  const file = isKept ? join(environment.brigHome, "history.jsonl") : null;
  return await PromptHistory.open(file, {
    // Another session may take the place of the first.
    get threadId() {
      return threadId() ?? options.threadId;
    },
    now: () => new Date(),
  });
}

interface Session extends ScreenParts, ConversationInput {
  sessions: SessionSwitch;
  history: PromptHistory;
  images: readonly string[];
}

/** Waits for the person to leave, and closes everything. */
async function converse(session: Session): Promise<void> {
  const { context, sessions, store, keyboard } = session;
  const screen = new TerminalScreen(store, context, keyboard);
  try {
    await drive(session, screen);
  } finally {
    await screen.answered();
    keyboard.release();
    try {
      await sessions.close();
    } finally {
      store.update((state) => ({ ...state, stage: "left" }), { isUrgent: true });
      screen.close();
    }
    await session.history.close();
  }
}

/** Returns when the session ends or the terminal is gone. Rejects when the screen cannot be drawn. */
async function drive(session: Session, screen: TerminalScreen): Promise<void> {
  const { store, questions, history, context, keyboard, prompt, sessions } = session;
  using completer = new Completer(sessions);
  const actions = createActions(session, completer);
  const driver = new Driver({
    ...{ store, questions, history, actions, screen },
    complete: (word, show) => completer.complete(word, show),
    findPictures: (text) => pastedPictures(text, context.cwd),
    now: () => Date.now(),
  });
  if (context.signal.aborted) driver.leave();
  context.signal.addEventListener("abort", () => driver.leave(), { once: true });
  if (prompt !== undefined) driver.submit(draftOf(prompt));
  keyboard.listen(driver);
  await Promise.race([driver.left, screen.broken]);
  await Promise.race([driver.settled(), pause(SETTLE_MS)]);
}

function createActions(session: Session, completer: Completer): ConversationActions {
  const { store, sessions, show, questions, context } = session;
  let { images } = session;
  const showNewTrouble = createTroubleNotice(session);
  /** Null if a file is no picture any more; then nothing is sent. */
  const readPictures = (paths: readonly string[]) =>
    readImageFiles(paths, context).catch((error: unknown) => {
      if (!isBrigError(error)) throw error;
      show({ ...failureNotice(error), hint: "nothing was sent; the up key brings the message back" });
      return null;
    });
  const showEnd = () => {
    completer.refresh();
    sessions.showFooter();
  };
  return {
    async runTurn({ text, pictures }, signal) {
      const pasted = await readPictures(pictures);
      if (pasted === null) return;
      const first = images;
      images = [];
      const names = [...(first.length > 0 ? imageFiles(session.flags.image ?? []) : []), ...pictures];
      const all = [...first, ...pasted];
      for (const block of pictureBlocks(all, names)) show(block);
      await sessions.conversation.runTurn({ prompt: text, images: all, signal });
      showNewTrouble();
      showEnd();
    },
    async runShell(script, signal) {
      try {
        await sessions.conversation.runUserCommand(script, { signal });
      } catch (error) {
        if (!signal.aborted && !isBrigError(error)) throw error;
        if (isBrigError(error)) show(failureNotice(error));
      }
      showNewTrouble();
      showEnd();
    },
    interruptAgents: () => sessions.conversation.interruptAgents(),
    async runCommand(command, call) {
      const { conversation, setup } = sessions;
      await runSlashCommand(command, call, {
        conversation,
        setup,
        questions,
        show,
        sessions,
        context,
        hasBusyAgents: () => hasBusyAgents(store.read()),
        showWork: async (what, signal, run) => await showWork(store, { what, signal, run }),
        onNewSandbox: () => sessions.showStart(),
        describeTools: () => toolRows(sessions, context),
      });
      showEnd();
    },
  };
}

/** The pictures that go with a message, from these files. */
function pictureBlocks(images: readonly string[], files: readonly string[]): Block[] {
  return images.flatMap((image, index) => {
    const picture = readPicture(image, neutraliseLine(basename(files[index] ?? "")));
    return picture === null ? [] : [{ kind: "picture", picture }];
  });
}

/** Returns a function that shows a problem with the session file, but not the same problem twice. */
function createTroubleNotice({ sessions, show }: Session): () => void {
  let known: string | null = null;
  return () => {
    const trouble = sessions.setup.options.session?.trouble ?? null;
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
