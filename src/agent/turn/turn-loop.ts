import { beforeAbort } from "../../lib/time/before-abort.js";
import { pause } from "../../lib/time/pause.js";
import type { TruncationPolicy } from "../../sandbox/index.js";
import type { AgentSandbox } from "../agent-sandbox.js";
import type { CompactionOutcome, Compactor } from "../compaction/compactor.js";
import type { ContextMessages, ContextSource } from "../context/context-messages.js";
import { userMessage } from "../context/prompt.js";
import type { TurnInput } from "../conversation-options.js";
import { itemTokens, textMessage } from "../model/items.js";
import type { ModelRequest } from "../model/model-client.js";
import type { SessionSetting } from "../session/setting.js";
import * as records from "../session/write/session-records.js";
import type { SessionServers } from "../session-servers.js";
import { type ResponseContext, type ResponseEnd, readResponse } from "./read-response.js";
import { Reconnects } from "./reconnects.js";
import type { Turn } from "./turn.js";

/** Everything that a turn works with, from its first request to its last. */
interface TurnContext extends Turn, ResponseContext {
  sandboxReady: Promise<AgentSandbox>;
  /** Null without MCP servers. */
  servers: SessionServers | null;
  /** Returns texts about agents for the model, each of them only once. */
  takeNotices(): readonly string[];
  contextMessages: ContextMessages;
  compactor: Compactor;
  setting: SessionSetting;
  instructions: string;
  truncation: TruncationPolicy;
  outputSchema: ModelRequest["outputSchema"];
  now: () => Date;
  /** Returns a number from 0 up to but not including 1. */
  random: () => number;
}

/** Asks the model until a response calls no tool. Throws whatever ends the turn before that. */
export async function takeTurn(input: TurnInput, context: TurnContext): Promise<void> {
  await begin(input, context);
  const { servers, signal, transcript } = context;
  await servers?.ready({ signal, emit: (event) => transcript.emit(event) });
  for (;;) {
    const { callCount } = await respond(context);
    if (callCount === 0) break;
    await makeRoom("limit", context);
  }
  // A turn without calls fails as well if its sandbox cannot start.
  await beforeAbort(context.sandboxReady, context.signal);
}

async function begin({ prompt, images = [] }: TurnInput, context: TurnContext): Promise<void> {
  const { transcript, compactor, contextMessages, signal } = context;
  const asked = userMessage(prompt, images);
  transcript.keep(records.turnStartedEvent(context.id));
  transcript.emit({ kind: "turn-started", prompt });
  const { kind } = await compactor.compactIfFull({ signal }, { comingTokens: itemTokens(asked) });
  if (kind === "compacted") contextMessages.forget();
  try {
    const now = context.now();
    const messages = await contextMessages.next(contextSource(context, now));
    keepTurnContext(context, now);
    for (const message of messages) transcript.recordItem(message);
  } finally {
    transcript.recordItem(asked);
    transcript.keep(records.userMessageEvent(asked));
  }
}

/** Records what the model has been sent about the session, for when the session is resumed. */
function keepTurnContext(context: TurnContext, now: Date): void {
  const { id: turnId, transcript, setting, model, truncation } = context;
  transcript.keep(records.turnContext({ turnId, setting, model, truncation, now }));
}

function contextSource({ setting, sandboxReady, signal, transcript }: TurnContext, now: Date): ContextSource {
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
 * Asks until a response is complete. A response that broke off is asked for again, with all that it had
 * completed. If the endpoint says that the conversation is too long, or stops where the context window ends,
 * the conversation is compacted once.
 */
async function respond(context: TurnContext): Promise<ResponseEnd & { kind: "completed" }> {
  const { model, transcript, tools, instructions, outputSchema, random, signal } = context;
  let reconnects: Reconnects | null = null;
  let hasMadeRoom = false;
  for (;;) {
    await recordNotices(context);
    const request = { instructions, input: transcript.toInput(), tools: tools.getSpecs(), outputSchema };
    const end = await readResponse(request, context);
    if (end.kind === "completed") return end;
    if (end.kind === "overflow" || end.kind === "incomplete") {
      const needsRoom = end.kind === "overflow" || context.compactor.isWindowFull;
      if (!needsRoom || hasMadeRoom || (await makeRoom("overflow", context)).kind === "nothing")
        throw end.error;
      hasMadeRoom = true;
      continue;
    }
    reconnects ??= new Reconnects(model, { random });
    const reconnecting = reconnects.next(end);
    transcript.emit(reconnecting);
    await pause(reconnecting.delayMs, signal);
  }
}

async function recordNotices({ takeNotices, transcript, restorePoints }: TurnContext): Promise<void> {
  const notices = takeNotices();
  if (notices.length > 0) await restorePoints.settled;
  for (const text of notices) transcript.recordItem(textMessage("user", text));
}

/**
 * Compacts in the middle of a turn, so the context messages that the summary replaces are sent again at once.
 */
async function makeRoom(reason: "limit" | "overflow", context: TurnContext): Promise<CompactionOutcome> {
  const { compactor, contextMessages, signal } = context;
  let now: Date | null = null;
  const pass = {
    signal,
    async context() {
      await context.restorePoints.settled;
      now = context.now();
      return await contextMessages.everything(contextSource(context, now));
    },
  };
  const outcome =
    reason === "limit" ? await compactor.compactIfFull(pass) : await compactor.compact({ ...pass, reason });
  if (outcome.kind === "compacted") keepTurnContext(context, now ?? context.now());
  return outcome;
}
