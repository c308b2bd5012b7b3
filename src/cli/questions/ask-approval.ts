import { EventEmitter, once } from "node:events";
import { styleText } from "node:util";
import type { ApprovalAnswer, Approver } from "../../agent/index.js";
import type { CliContext } from "../../command/index.js";
import { terminalSize, write } from "../../command/index.js";
import { breakBetweenWords } from "../../lib/terminal/break-columns.js";
import { beforeAbort } from "../../lib/time/before-abort.js";
import { pause } from "../../lib/time/pause.js";
import {
  type ApprovalChoice,
  answerOfEnter,
  answerOfEscape,
  approvalQuestion,
  type QuestionLine,
} from "./approval-question.js";

export interface TerminalApproverOptions {
  usesColour: boolean;
  /** Input is discarded for this long before a question is shown, so that it is no answer. Default: 150. */
  settleMs?: number | undefined;
}

const SETTLE_MS = 150;
const PROMPT = "  Answer (Enter is no): ";

/**
 * Asks for approval on standard error. A single key answers. Enter and the end of the input mean no; Escape
 * and ctrl-C mean no and end the turn. Ctrl-Z suspends brig, and the question goes on. Discards what was typed before
 * the question was shown.
 */
export function terminalApprover(
  terminal: Pick<CliContext, "stdin" | "stderr" | "suspend">,
  { usesColour, settleMs = SETTLE_MS }: TerminalApproverOptions,
): Approver {
  return {
    async ask(request, { signal }) {
      const { stderr } = terminal;
      const size = terminalSize(stderr);
      const { lines, choices } = approvalQuestion(request, { columns: size.cols });
      await using keys = openKeys(terminal);
      await keys.discard(settleMs, signal);
      const shown = [
        "",
        ...lines.map((line) => styled(line, usesColour)),
        ...choices.flatMap(({ key, label }) => choiceLines({ key, label }, size.cols)),
        ...choiceLines({ key: "esc", label: "no, and end the turn" }, size.cols),
      ];
      await write(stderr, `${shown.join("\n")}\n${PROMPT}`);
      try {
        const answer = await readAnswer(keys, {
          choices,
          signal,
          onContinued: () => write(stderr, `\n${PROMPT}`),
        });
        await write(stderr, `${answerText(answer)}\n`);
        return answer;
      } catch (error) {
        await write(stderr, "(withdrawn)\n");
        throw error;
      }
    },
  };
}

const styles = { title: "bold", quote: "dim", command: "cyan", frame: "dim" } as const;

function styled({ text, kind }: QuestionLine, usesColour: boolean): string {
  return usesColour ? styleText(styles[kind], text, { validateStream: false }) : text;
}

function choiceLines({ key, label }: { key: string; label: string }, columns: number): string[] {
  const indent = 7;
  return breakBetweenWords(label, Math.max(columns, 40) - indent).map(
    (row, at) => `${(at === 0 ? `  ${key}` : "").padEnd(indent)}${row.replace(/^ /, "")}`,
  );
}

function answerText(answer: ApprovalAnswer): string {
  if (answer === "denied") return "no";
  if (answer === "abort") return "no, the turn ends";
  return answer === "approved" ? "yes" : "yes, from now on";
}

async function readAnswer(
  keys: Keys,
  {
    choices,
    signal,
    onContinued,
  }: { choices: readonly ApprovalChoice[]; signal: AbortSignal | undefined; onContinued(): Promise<void> },
): Promise<ApprovalAnswer> {
  for (;;) {
    const typed = await keys.next(signal);
    if (typed === null || typed === "\r" || typed === "\n" || typed === "\u0004") return answerOfEnter;
    if (typed === "\u001b" || typed === "\u0003" || typed === "\u001c") return answerOfEscape;
    if (typed === "\u001a") {
      keys.suspend();
      await onContinued();
    }
    // The letter may be followed by Enter. Anything longer, such as a paste, is no answer.
    const letter = typed.replace(/[\r\n]$/, "").toLowerCase();
    const choice = choices.find(({ key }) => key === letter);
    if (choice !== undefined) return choice.answer;
  }
}

interface Keys extends AsyncDisposable {
  /** Returns the next chunk of input, or null at its end. Rejects with the signal's reason. */
  next(signal: AbortSignal | undefined): Promise<string | null>;
  /** Discards the input of the next `ms` milliseconds. */
  discard(ms: number, signal: AbortSignal | undefined): Promise<void>;
  /** Returns when the job is continued. The shell has the terminal meanwhile, as it was before. */
  suspend(): void;
}

/** Reads key by key and without echo until it is disposed. */
function openKeys({ stdin, suspend }: Pick<CliContext, "stdin" | "suspend">): Keys {
  const typed: string[] = [];
  const changes = new EventEmitter();
  let isOver = stdin.readableEnded;
  const take = (chunk: Uint8Array | string) => {
    typed.push(chunk.toString());
    changes.emit("change");
  };
  const end = () => {
    isOver = true;
    changes.emit("change");
  };
  const isRaw = stdin.isTTY === true;
  if (isRaw) stdin.setRawMode?.(true);
  stdin.on("data", take);
  stdin.once("end", end);
  stdin.resume();
  return {
    async next(signal) {
      signal?.throwIfAborted();
      if (typed.length === 0 && !isOver) {
        const changed = once(changes, "change");
        await beforeAbort(changed, signal);
      }
      return typed.shift() ?? null;
    },
    async discard(ms, signal) {
      await pause(ms, signal);
      typed.length = 0;
    },
    suspend() {
      if (isRaw) stdin.setRawMode?.(false);
      suspend();
      if (isRaw) stdin.setRawMode?.(true);
    },
    [Symbol.asyncDispose]() {
      stdin.off("data", take);
      stdin.off("end", end);
      if (isRaw) stdin.setRawMode?.(false);
      stdin.pause();
      return Promise.resolve();
    },
  };
}
