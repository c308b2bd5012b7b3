import { beforeAbort } from "../../lib/time/before-abort.js";
import { pause } from "../../lib/time/pause.js";
import type { ModelClient, ModelRequest } from "../../model/model-client.js";
import type { TruncationPolicy } from "../../output/truncation.js";
import { itemTokens } from "../../session/item-tokens.js";
import type { SessionSetting } from "../../session/setting.js";
import * as records from "../../session/write/session-records.js";
import type { AgentSandbox } from "../agent-sandbox.js";
import type { CompactionOutcome, Compactor } from "../compaction/compactor.js";
import type { ContextMessages, ContextSource } from "../context/context-messages.js";
import { abortedTurnMessage, userMessage } from "../context/prompt.js";
import type { TurnInput } from "../conversation-options.js";
import type { CompactionReason } from "./events.js";
import { type ResponseContext, type ResponseEnd, readResponse } from "./read-response.js";
import { Reconnects } from "./reconnects.js";
import type { Transcript } from "./transcript.js";
import type { Turn, TurnEnding } from "./turn.js";

/** What it takes to tell the model where it works, and to keep what it was told. */
interface ContextTelling {
  id: string;
  setting: SessionSetting;
  truncation: TruncationPolicy;
  model: { readonly model: string };
  sandboxReady: Promise<AgentSandbox>;
  transcript: Transcript;
  contextMessages: ContextMessages;
  now: () => Date;
  signal: AbortSignal;
}

/** What it takes to sum the conversation up in the middle of a turn. */
interface RoomMaking extends ContextTelling {
  compactor: Compactor;
}

/** What it takes to have a response, however often it has to be asked for. */
interface Responding extends RoomMaking, ResponseContext {
  sandboxReady: Promise<AgentSandbox>;
  model: ModelClient;
  instructions: string;
  outputSchema: ModelRequest["outputSchema"];
  /** From 0 up to but not including 1. */
  random: () => number;
}

/** What a turn works with, from its first request to its last. */
export type TurnContext = Turn & Responding;

/** Tells the model what it has to know, and asks it until a response calls no tool. Whatever ends the turn sooner is thrown. */
export async function takeTurn(input: TurnInput, context: TurnContext): Promise<void> {
  await begin(input, context);
  for (;;) {
    const { callCount } = await respond(context);
    if (callCount === 0) break;
    await makeRoom("limit", context);
  }
  // Even a turn without calls is not done in a sandbox that could not be made.
  await beforeAbort(context.sandboxReady, context.signal);
}

/** Everything the model and the session file are told before the first request. */
async function begin({ prompt, images = [] }: TurnInput, context: RoomMaking): Promise<void> {
  const { transcript, compactor, contextMessages, signal } = context;
  const asked = userMessage(prompt, images);
  transcript.keep(records.turnStartedEvent(context.id));
  transcript.emit({ kind: "turn-started" });
  const { kind } = await compactor.compactIfFull({ signal }, { comingTokens: itemTokens(asked) });
  if (kind === "compacted") contextMessages.forget();
  try {
    await sendContext(context);
  } finally {
    transcript.recordItem(asked);
    transcript.keep(records.userMessageEvent(asked));
  }
}

async function sendContext(context: ContextTelling): Promise<void> {
  const now = context.now();
  const messages = await context.contextMessages.next(contextSource(context, now));
  keepTurnContext(context, now);
  for (const message of messages) context.transcript.recordItem(message);
}

/** Whoever resumes the session knows from it what the model was told last. */
function keepTurnContext(
  { id: turnId, transcript, model, setting, truncation }: ContextTelling,
  now: Date,
): void {
  transcript.keep(records.turnContext({ turnId, setting, model: model.model, truncation, now }));
}

function contextSource(
  { setting, sandboxReady, signal, transcript }: ContextTelling,
  now: Date,
): ContextSource {
  return {
    setting,
    now,
    files: async () => (await beforeAbort(sandboxReady, signal)).files,
    signal,
    onWarning: (message) => {
      transcript.emit({ kind: "warning", message });
    },
  };
}

/**
 * Asks once. A response that broke off is asked for again, with all that it had completed; one that cannot be had for the length of the
 * conversation, with a summary.
 */
async function respond(context: Responding): Promise<ResponseEnd & { kind: "completed" }> {
  const { model, transcript, tools, instructions, outputSchema, random, signal } = context;
  const reconnects = new Reconnects(model, { random });
  let hasMadeRoom = false;
  for (;;) {
    const request = { instructions, input: transcript.toInput(), tools: tools.getSpecs(), outputSchema };
    const end = await readResponse(request, context);
    if (end.kind === "completed") return end;
    if (end.kind === "overflow") {
      if (hasMadeRoom || (await makeRoom("overflow", context)).kind === "nothing") throw end.error;
      hasMadeRoom = true;
      continue;
    }
    const reconnecting = reconnects.next(end);
    transcript.emit(reconnecting);
    await pause(reconnecting.delayMs, signal);
  }
}

/** In the middle of a turn the model is told at once again what the summary leaves out. */
async function makeRoom(
  reason: Exclude<CompactionReason, "request">,
  context: RoomMaking,
): Promise<CompactionOutcome> {
  const { compactor, contextMessages, signal } = context;
  const now = context.now();
  const pass = { signal, context: () => contextMessages.everything(contextSource(context, now)) };
  const outcome =
    reason === "limit" ? await compactor.compactIfFull(pass) : await compactor.compact({ ...pass, reason });
  if (outcome.kind === "compacted") keepTurnContext(context, now);
  return outcome;
}

/** What the session file and who listens are told of a turn's end. */
export function recordEnding(
  ending: TurnEnding,
  { id, transcript }: { id: string; transcript: Transcript },
): void {
  switch (ending.status) {
    case "completed":
      transcript.keep(records.turnCompletedEvent(id, transcript.lastMessage));
      transcript.emit({ kind: "turn-completed", usage: transcript.usage });
      break;
    case "interrupted":
      transcript.recordItem(abortedTurnMessage());
      transcript.keep(records.turnAbortedEvent(id));
      transcript.emit({ kind: "turn-interrupted" });
      break;
    case "failed":
      transcript.keep(records.errorEvent(ending.error.message));
      transcript.emit({ kind: "turn-failed", error: ending.error });
      break;
    default:
      ending satisfies never;
  }
}
