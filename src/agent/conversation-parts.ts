import type { TruncationPolicy } from "../sandbox/index.js";
import { tokensOfBytes } from "../sandbox/index.js";
import type { AgentPlacement } from "./agents/agent-label.js";
import type { AgentPlace } from "./agents/conversation-agents.js";
import { Compactor } from "./compaction/compactor.js";
import { ContextMessages } from "./context/context-messages.js";
import { defaultInstructions } from "./context/prompt.js";
import type { ConversationOptions } from "./conversation-options.js";
import type { ResponseItem } from "./model/items.js";
import type { ModelClient } from "./model/model-client.js";
import { profileOf } from "./model/model-profile.js";
import { observedModel } from "./model/observed-model.js";
import { RestorePoints } from "./restore-points/restore-points.js";
import { changesMissingMessage } from "./restore-points/workspace-messages.js";
import { noSessionLog } from "./session/write/session-file.js";
import { SessionRecorder } from "./session-recorder.js";
import { SetupOnce } from "./setup/session-setup.js";
import { ConversationTelemetry } from "./telemetry/conversation-telemetry.js";
import { createThreadId } from "./thread-id.js";
import { Transcript } from "./turn/transcript.js";

/** Parts that stay the same for a conversation with one model. */
export interface ConversationParts {
  threadId: string;
  instructions: string;
  truncation: TruncationPolicy;
  /** Reports its requests as events. */
  model: ModelClient;
  /** Null for an agent, whose events are those of its session, too. */
  telemetry: ConversationTelemetry | null;
  now: () => Date;
  random: () => number;
  transcript: Transcript;
  recorder: SessionRecorder;
  setup: SetupOnce;
  compactor: Compactor;
  contextMessages: ContextMessages;
  restorePoints: RestorePoints;
}

export function conversationParts(options: ConversationOptions, place: AgentPlace | null): ConversationParts {
  const { now = () => new Date(), random = Math.random } = options;
  const instructions = options.instructions ?? defaultInstructions;
  const truncation = options.truncation ?? profileOf(options.model.model).truncation;
  const threadId = options.threadId ?? createThreadId(now());
  const { onEvent, capturesContent } = options;
  const telemetry = place === null ? new ConversationTelemetry({ capturesContent }) : null;
  const transcript = new Transcript({
    log: options.session ?? noSessionLog,
    onEvent: (event) => {
      telemetry?.take(event);
      onEvent?.(event);
    },
    truncation,
    fixedTokens: tokensOfBytes(Buffer.byteLength(instructions)),
    initialItems: options.initialItems,
    usage: options.earlierUse?.usage,
  });
  const model = toldModel(options.model, transcript);
  const recorder = new SessionRecorder(transcript, {
    threadId,
    provider: model.provider,
    branch: options.branch ?? null,
    ...beginningOf(options, place),
    now,
  });
  return {
    threadId,
    instructions,
    truncation,
    model,
    telemetry,
    now,
    random,
    transcript,
    recorder,
    setup: new SetupOnce(options.setup, recorder),
    compactor: new Compactor({ ...options.compaction, model, instructions, transcript, random }),
    contextMessages: new ContextMessages(options.context ?? {}, options.sentContext ?? null),
    restorePoints: new RestorePoints(transcript),
  };
}

/** The parts for another model, which goes on with the same transcript. */
export function partsForModel(parts: ConversationParts, options: ConversationOptions): ConversationParts {
  const { instructions, transcript, random } = parts;
  const model = toldModel(options.model, transcript);
  const truncation = options.truncation ?? profileOf(model.model).truncation;
  transcript.cutOutputsBy(truncation);
  const compactor = new Compactor({ ...options.compaction, model, instructions, transcript, random });
  return { ...parts, model, truncation, compactor };
}

/** The model, whose requests are told to the listeners. */
function toldModel(model: ModelClient, transcript: Transcript): ModelClient {
  const { provider, model: name } = model;
  return observedModel(model, {
    onRequest: () => transcript.emit({ kind: "request-started", provider, model: name }),
    onEnd: (end) => transcript.emit({ kind: "request-ended", ...end }),
  });
}

/** Returns what the session file begins with, and whether the workspace's tree is recorded at its end. */
function beginningOf(
  { initialItems, earlierUse, recordsTree, workspaceLoss }: ConversationOptions,
  place: AgentPlace | null,
): {
  isContinued: boolean;
  recordsTree: boolean;
  agent: AgentPlacement | null;
  copiedItems: readonly ResponseItem[];
  openingItems: readonly ResponseItem[];
} {
  // A new agent may begin with a copy of its parent's conversation, which its own file does not contain.
  const isNewAgent = place !== null && earlierUse === undefined;
  return {
    isContinued: initialItems !== undefined && !isNewAgent,
    recordsTree: recordsTree === true,
    agent: place?.placement ?? null,
    copiedItems: isNewAgent ? (initialItems ?? []) : [],
    openingItems: workspaceLoss === undefined ? [] : [changesMissingMessage(workspaceLoss)],
  };
}
