import type { Command } from "commander";
import { findSession } from "../../agent/index.js";
import type { CliContext, SandboxFlags } from "../../command/index.js";
import {
  addContainerOptions,
  durationArgument,
  flaggedSettings,
  say,
  usesColour,
  write,
  writeJson,
} from "../../command/index.js";
import { invalidUsage } from "../../errors.js";
import { createProgress } from "../../lib/terminal/progress.js";
import { MAX_TIMEOUT_MS } from "../../sandbox/index.js";
import { lastSession, noSession } from "../sessions/chosen-session.js";
import { type BisectOutcome, bisectStates, type Tried } from "./bisect-states.js";
import { beginningText, foundText, notFoundText, stateText, triedText } from "./bisect-text.js";
import { expectedTries } from "./search.js";
import { readSessionStates, type SessionState } from "./session-states.js";
import { type Attempt, type TryOptions, tryState } from "./try-state.js";

interface BisectFlags extends Omit<SandboxFlags, "cd" | "workspace" | "git" | "addDir" | "keep"> {
  last?: boolean;
  timeout?: number;
  verbose?: boolean;
  json?: boolean;
}

const NOT_FOUND_STATUS = 1;

export function defineBisect(command: Command, context: CliContext): void {
  command
    .argument("[session]", "an id or the start of one; left out with --last")
    .argument("[command...]", "a program that fails where something is broken, and its arguments")
    .usage("[options] ID -- COMMAND [ARGUMENT…]")
    .option("--last", "search the most recent session of this directory")
    .option(
      "--timeout <time>",
      "a try that takes longer fails: 90, 1.5, 30s, 2m",
      durationArgument({ atMostMs: MAX_TIMEOUT_MS }),
    )
    .option("-v, --verbose", "show on stderr all that the command prints")
    .option("--json", "print what was found, and all tries, as JSON");
  addContainerOptions(command)
    .addHelpText("after", help)
    .action(async (session: string | undefined, argv: string[], flags: BisectFlags) => {
      await bisect(target({ session, argv }, flags), flags, context);
    });
}

const help = `
The session must have run with --workspace overlay. The command runs in states of the session's workspace, each time in
a new sandbox, and never on your own files. It must pass in the state that the session began with, and fail in the last.
Exit codes of the command, as for git bisect run: 0 passes, 125 cannot say, others up to 127 fail, from 128 on the search ends.
Exit status of brig bisect: 0 if the call was found, 1 if not.`;

interface Target {
  /** Null for the most recent session. */
  session: string | null;
  argv: readonly string[];
}

function target(
  { session, argv }: { session: string | undefined; argv: readonly string[] },
  { last }: BisectFlags,
): Target {
  const words = last === true && session !== undefined ? [session, ...argv] : argv;
  if (last !== true && session === undefined) throw noSession();
  if (words[0] === undefined || words[0] === "")
    throw invalidUsage("no command given", "for example: brig bisect --last -- npm test");
  return { session: last === true ? null : (session ?? null), argv: words };
}

async function bisect({ session, argv }: Target, flags: BisectFlags, context: CliContext): Promise<void> {
  const { environment, signal, stdout, stderr } = context;
  const { brigHome } = environment;
  // Reports wrong flags before anything is read.
  const flagged = flaggedSettings(flags, context);
  const file = session === null ? await lastSession(context) : await findSession(brigHome, session);
  const { workspace, states, image } = await readSessionStates(file, { brigHome, signal });
  const tryCount = 2 + expectedTries(states.length - 2);
  await say(stderr, beginningText({ workspace, states }, { tryCount }));
  const { connectEngine } = await import("../../sandbox/index.js");
  const options: TryOptions = {
    argv,
    timeoutMs: flags.timeout,
    isVerbose: flags.verbose === true,
    settings: { ...flagged, image: flags.containerImage ?? image ?? undefined },
    engine: await connectEngine({ env: environment }),
    context,
  };
  const { outcome, tries } = await bisectStates(states, (state) => tryAloud(state, options));
  if (outcome.kind !== "found") {
    context.setExitStatus(NOT_FOUND_STATUS);
    await say(stderr, notFoundText(outcome.kind, tries.at(-1)));
    if (flags.json === true)
      await writeJson(stdout, outcomeAsJson(outcome, { session: file.id, tries, goOnAt: null }));
    return;
  }
  const goOnAt = stepBefore(states, outcome);
  if (flags.json === true)
    return await writeJson(stdout, outcomeAsJson(outcome, { session: file.id, tries, goOnAt }));
  const goOn = goOnAt === null ? null : `brig resume ${file.id} --at ${goOnAt}`;
  await write(stdout, foundText(outcome, { goOn }));
}

/** Tries a state; prints the state before the attempt, and the outcome after it. */
async function tryAloud(state: SessionState, options: TryOptions): Promise<Attempt> {
  const { context, isVerbose } = options;
  const { stderr } = context;
  const progress = createProgress(stderr, { usesColour: usesColour(context) });
  if (stderr.isTTY === true && !isVerbose) progress.step(`trying the state ${stateText(state)}`);
  try {
    const attempt = await tryState(state, options);
    progress.close();
    await say(stderr, `brig: ${triedText({ state, attempt })}`);
    return attempt;
  } finally {
    progress.close();
  }
}

/**
 * The last step of the session whose state is still good, to resume the session from there; null if it is not known.
 */
function stepBefore(
  states: readonly SessionState[],
  { lastGood, firstBad, unjudged }: BisectOutcome & { kind: "found" },
): number | null {
  const next = ownStep(unjudged[0] ?? firstBad);
  if (next !== null) return next > 1 ? next - 1 : null;
  const before = states.slice(0, states.indexOf(lastGood) + 1).map(ownStep);
  return before.findLast((step) => step !== null) ?? null;
}

/** The session's step that led to a state; null if an agent of the session, or something unknown, led to it. */
function ownStep({ origin }: SessionState): number | null {
  return origin.kind === "step" && origin.agent === null ? origin.change.step : null;
}

/** The outcome as `--json` prints it. */
function outcomeAsJson(
  outcome: BisectOutcome,
  { session, tries, goOnAt }: { session: string; tries: readonly Tried[]; goOnAt: number | null },
): object {
  const shared = { session, outcome: outcome.kind };
  const tried = tries.map(({ state, attempt }) => ({ ...placeAsJson(state), ...attemptAsJson(attempt) }));
  if (outcome.kind !== "found") return { ...shared, tries: tried };
  const { lastGood, firstBad, unjudged } = outcome;
  return {
    ...shared,
    lastGood: stateAsJson(lastGood),
    firstBad: stateAsJson(firstBad),
    unjudged: unjudged.map(stateAsJson),
    resumeAt: goOnAt,
    tries: tried,
  };
}

function stateAsJson(state: SessionState): object {
  const { origin } = state;
  if (origin.kind !== "step") return { ...placeAsJson(state), call: null, count: null, changes: null };
  const { call, point } = origin.change;
  return {
    ...placeAsJson(state),
    call: call === null ? null : { id: call.callId, name: call.name, input: call.input },
    count: point.count,
    changes: point.changes,
  };
}

function placeAsJson({ snapshot, point, origin }: SessionState): object {
  const step = origin.kind === "step" ? origin.change.step : null;
  const agent = origin.kind === "step" ? origin.agent : null;
  return { snapshot, point, kind: kindOf(origin), step, agent };
}

function kindOf(origin: SessionState["origin"]): string {
  if (origin.kind !== "step") return origin.kind;
  return origin.change.call === null ? "undo" : "call";
}

function attemptAsJson(attempt: Attempt): object {
  if (attempt.kind === "not-made") return { verdict: "skip", error: attempt.error.message };
  const { verdict, status } = attempt;
  const { exitCode, timedOut, durationMs } = status;
  return { verdict, exitCode, timedOut, durationMs };
}
