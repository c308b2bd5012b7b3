import { z } from "zod";
import { APPROVAL_POLICIES, SANDBOX_MODES } from "../../../sandbox/index.js";
import { faultsOf } from "../../../tools/index.js";

const codexArguments = z.strictObject({
  prompt: z.string(),
  model: z.string().nullish(),
  profile: z.string().nullish(),
  cwd: z
    .string()
    .refine((path) => !path.includes("\0"), "no path contains a zero character")
    .nullish(),
  "approval-policy": z.enum(APPROVAL_POLICIES).nullish(),
  sandbox: z.enum(SANDBOX_MODES).nullish(),
  config: z.record(z.string(), z.unknown()).nullish(),
  "base-instructions": z.string().nullish(),
  "developer-instructions": z.string().nullish(),
  "compact-prompt": z.string().nullish(),
  "include-plan-tool": z.boolean().nullish(),
  "include-apply-patch-tool": z.boolean().nullish(),
  "include-view-image-tool": z.boolean().nullish(),
  "tools-web-search-request": z.boolean().nullish(),
});

const replyArguments = z.object({
  prompt: z.string(),
  threadId: z.string().nullish(),
  conversationId: z.string().nullish(),
  sessionId: z.string().nullish(),
});

/**
 * The arguments of `codex` besides its prompt. For those that are null or undefined, the server's own options
 * hold.
 */
export type CallSettings = Omit<z.output<typeof codexArguments>, "prompt">;

export type ParsedCall =
  | { kind: "codex"; prompt: string; settings: CallSettings }
  | { kind: "codex-reply"; prompt: string; threadId: string }
  /** The text is for the client's model. */
  | { kind: "invalid"; reason: string };

const CANNOT_PARSE = "Failed to parse configuration for Codex tool: ";
const THREAD_ID = /^(?:urn:uuid:)?([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/i;

/** Reads the arguments of `codex`. Keys may also be written with `_`, as older versions had some of them. */
export function parseCodexCall(given: unknown): ParsedCall {
  if (given === undefined)
    return invalid("Missing arguments for codex tool-call; the `prompt` field is required.");
  const { names, twice } = withHyphens(given);
  if (twice !== null) return invalid(`${CANNOT_PARSE}\`${twice}\` is given twice`);
  const parsed = codexArguments.safeParse(names);
  if (!parsed.success) return invalid(CANNOT_PARSE + faultsOf(parsed.error, names));
  const { prompt, ...settings } = parsed.data;
  return { kind: "codex", prompt, settings };
}

/** Reads the arguments of `codex-reply`. Codex ignores unknown keys here. */
export function parseReplyCall(given: unknown): ParsedCall {
  if (given === undefined)
    return invalid(
      "Missing arguments for codex-reply tool-call; the `thread_id` and `prompt` fields are required.",
    );
  const parsed = replyArguments.safeParse(given);
  if (!parsed.success) return invalid(CANNOT_PARSE + faultsOf(parsed.error, given));
  const { prompt, threadId, conversationId, sessionId } = parsed.data;
  const id = threadId ?? conversationId ?? sessionId ?? null;
  if (id === null)
    return invalid("Failed to parse thread_id: either threadId or conversationId must be provided");
  const uuid = THREAD_ID.exec(id)?.[1];
  if (uuid === undefined)
    return invalid(
      `Failed to parse thread_id: ${JSON.stringify(id.slice(0, 100))} is not the threadId of a result of codex`,
    );
  return { kind: "codex-reply", prompt, threadId: uuid.toLowerCase() };
}

function withHyphens(given: unknown): { names: unknown; twice: string | null } {
  if (typeof given !== "object" || given === null || Array.isArray(given))
    return { names: given, twice: null };
  const entries = Object.entries(given).map(([key, value]) => [key.replaceAll("_", "-"), value] as const);
  const keys = entries.map(([key]) => key);
  return {
    names: Object.fromEntries(entries),
    twice: keys.find((key, at) => keys.indexOf(key) !== at) ?? null,
  };
}

function invalid(reason: string): ParsedCall {
  return { kind: "invalid", reason };
}
