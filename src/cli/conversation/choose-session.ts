import { realpath } from "node:fs/promises";
import { basename, resolve } from "node:path";
import type { SessionHead } from "../../agent/index.js";
import { sessionPages } from "../../agent/index.js";
import type { CliContext } from "../../command/index.js";
import { displayWidth, fitWidth } from "../../lib/terminal/display-width.js";
import { neutraliseLine } from "../../lib/terminal/terminal.js";
import { chooserOf, type ListEntry } from "./chooser.js";
import { Keyboard } from "./input/keyboard.js";
import { chooseFrom, type PendingQuestions } from "./question.js";
import { TerminalScreen } from "./screen/terminal-screen.js";
import { createScreen } from "./screen-parts.js";

interface SessionList {
  /** `$BRIG_HOME`. */
  home: string;
  /** Null for the sessions of all folders. */
  cwd: string | null;
  /** The file of the session that the person is in. Default: none. */
  present?: string | null | undefined;
  signal?: AbortSignal | undefined;
}

const ALL_FOLDERS = "all";
const COLUMNS = { folder: 18, branch: 18 };
/** So much of a prompt is searched, in UTF-16 units. */
const SEARCHED_PROMPT = 1000;

/** Has the person choose an earlier session, those of `cwd` first. Null if none is chosen, else the path of its file. */
export async function chooseSession(
  questions: PendingQuestions,
  { home, cwd, present, signal }: SessionList,
): Promise<string | null> {
  const others: ListEntry[] =
    cwd === null ? [] : [{ key: ALL_FOLDERS, label: "the sessions of all folders …", search: "" }];
  const chosen = await chooseFrom(
    questions,
    {
      title: cwd === null ? "Which session?" : `Which session of ${neutraliseLine(basename(cwd) || cwd)}?`,
      list: chooserOf(others, { at: others.length }),
      dismissal: "none",
    },
    { signal, source: entries(home, { cwd, present }) },
  );
  return chosen === ALL_FOLDERS
    ? await chooseSession(questions, { home, cwd: null, present, signal })
    : chosen;
}

async function* entries(home: string, { cwd, present }: Pick<SessionList, "cwd" | "present">) {
  const now = Date.now();
  for await (const page of sessionPages(home, { cwd }))
    yield page.filter(({ path }) => path !== present).map((session) => entryOf(session, now));
}

function entryOf({ path, updatedAt, cwd, branch, prompt }: SessionHead, now: number): ListEntry {
  const said = neutraliseLine((prompt ?? "").slice(0, SEARCHED_PROMPT).trim().replaceAll(/\s+/g, " "));
  const folder = neutraliseLine(cwd ?? "");
  const onBranch = neutraliseLine(branch ?? "");
  const label = [
    ageText(now - updatedAt.getTime()).padStart(7),
    column(basename(folder) || folder, COLUMNS.folder),
    column(onBranch, COLUMNS.branch),
    said,
  ].join("  ");
  return { key: path, label, search: `${folder} ${onBranch} ${said}` };
}

function column(text: string, columns: number): string {
  const fitted = fitWidth(text, columns);
  return fitted + " ".repeat(Math.max(0, columns - displayWidth(fitted)));
}

const ages = [
  [86_400_000, "d"],
  [3_600_000, "h"],
  [60_000, "min"],
] as const;

function ageText(ms: number): string {
  const [unitMs, unit] = ages.find(([least]) => ms >= least) ?? [1, null];
  return unit === null ? "now" : `${Math.floor(ms / unitMs)} ${unit}`;
}

/** Has a person at the terminal choose a session, before there is a conversation. Null if none is chosen. */
export async function pickSession(
  context: CliContext,
  { all = false, cd = "." }: { all?: boolean | undefined; cd?: string | undefined },
): Promise<string | null> {
  const named = resolve(context.cwd, cd);
  const cwd = all ? null : await realpath(named).catch(() => named);
  const keyboard = await Keyboard.open(context);
  const { store, questions } = createScreen(context, "choosing");
  const screen = new TerminalScreen(store, context);
  const left = new AbortController();
  using _ = linked(context.signal, left);
  try {
    const chosen = chooseSession(questions, {
      home: context.environment.brigHome,
      cwd,
      signal: left.signal,
    });
    keyboard.listen({
      press(key) {
        if (key.kind !== "key") questions.press(key);
        else if (key.name === "interrupt") context.interrupt();
        else if (key.name === "end-of-input") left.abort(null);
        else if (key.name === "suspend") screen.suspend();
        else questions.press(key);
      },
      leave: () => left.abort(null),
    });
    return await Promise.race([chosen, screen.broken]);
  } catch (error) {
    if (left.signal.aborted && left.signal.reason === null) return null;
    throw error;
  } finally {
    keyboard.release();
    store.update((state) => ({ ...state, stage: "left" }));
    screen.close();
  }
}

function linked(signal: AbortSignal, controller: AbortController): Disposable {
  const abort = () => controller.abort(signal.reason);
  if (signal.aborted) abort();
  signal.addEventListener("abort", abort, { once: true });
  return { [Symbol.dispose]: () => signal.removeEventListener("abort", abort) };
}
