import type { BrigError } from "../../errors.js";
import type { JsonSchema } from "../json-schema.js";

/** The MCP servers of a session, as the tools use them. */
export interface McpServers {
  /** In the order of the configuration. */
  readonly servers: readonly McpServerState[];
  /**
   * Resolves when every server has started or failed. Rejects with the error of a required server that
   * failed.
   */
  ready(options?: { signal?: AbortSignal | undefined }): Promise<void>;
  /** The tools that are enabled now, sorted by server and name. */
  tools(): readonly McpTool[];
  /** Calls the listener when `tools()` has changed; returns a function that stops it. */
  onToolsChanged(listener: () => void): () => void;
  /**
   * Calls a tool, never twice. A tool that fails has a result with `isError`. An abort rejects at once with the
   * signal's reason, even if the server is still working. Errors: `mcp.timed-out`; `mcp.failed` if the server
   * refuses the call, breaks the protocol, or ends before it has answered; `mcp.start-failed` if the server was not
   * running and cannot be started.
   */
  call(
    tool: McpTool,
    args: Readonly<Record<string, unknown>>,
    options?: McpCallOptions | undefined,
  ): Promise<McpResult>;
  /** One page. `cursor` is the `nextCursor` of the page before. */
  listResources(server: string, options?: McpPageOptions | undefined): Promise<McpResourcePage>;
  listResourceTemplates(
    server: string,
    options?: McpPageOptions | undefined,
  ): Promise<McpResourceTemplatePage>;
  readResource(
    server: string,
    uri: string,
    options?: { signal?: AbortSignal | undefined } | undefined,
  ): Promise<{ contents: readonly McpResourceContents[] }>;
  /** Ends every server. Calls that are still waiting reject. */
  close(): Promise<void>;
}

/** One server, as it is now. */
export interface McpServerState {
  readonly name: string;
  /** `failed`: it did not start, or it ended. The next call starts it again. */
  readonly status: "starting" | "ready" | "failed" | "closed";
  /** Why it failed; null otherwise. */
  readonly error: BrigError | null;
  readonly required: boolean;
  /** How many of its tools are enabled. */
  readonly toolCount: number;
  /** What the server says about its use, at most 16 KiB. Untrusted. */
  readonly instructions: string | null;
}

/** A tool of a server. All texts are the server's own and untrusted. */
export interface McpTool {
  readonly server: string;
  /** As the server calls it. */
  readonly name: string;
  /** Unique among all tools of the session: at most 64 letters, digits, `_` and `-`. */
  readonly modelName: string;
  readonly title: string | null;
  readonly description: string;
  /** The server's schema in the form that every model endpoint accepts. */
  readonly inputSchema: JsonSchema;
  readonly rawInputSchema: Readonly<Record<string, unknown>>;
  readonly annotations: McpToolAnnotations;
  /** Whether calls may run beside other calls. */
  readonly supportsParallel: boolean;
  readonly approval: McpApproval;
}

/** `auto`: by the annotations; `prompt`: always ask; `approve`: never ask. */
export type McpApproval = "auto" | "prompt" | "approve";

/** What a server says about a tool. A hint that it does not give is null. */
export interface McpToolAnnotations {
  readonly readOnly: boolean | null;
  readonly destructive: boolean | null;
  readonly idempotent: boolean | null;
  readonly openWorld: boolean | null;
}

/** Options of one call. */
export interface McpCallOptions {
  /** Aborting cancels the call. */
  signal?: AbortSignal | undefined;
  onProgress?: ((progress: McpProgress) => void) | undefined;
  /** Answers the server's questions during the call. Without it, they are declined. */
  elicit?: Elicit | undefined;
}

/** How far a call has come, as the server reports it. */
export interface McpProgress {
  readonly progress: number;
  readonly total: number | null;
  readonly message: string | null;
}

/** A server's answer to a call. */
export interface McpResult {
  readonly content: readonly McpContentBlock[];
  /** Undefined if there is none. */
  readonly structuredContent: unknown;
  readonly isError: boolean;
}

/** A part of a result as the server sent it. Only `type` is checked. */
export interface McpContentBlock {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** Which page of a list to ask for. */
export interface McpPageOptions {
  cursor?: string | undefined;
  signal?: AbortSignal | undefined;
}

/** One page of the list of resources. */
export interface McpResourcePage {
  readonly resources: readonly McpResource[];
  readonly nextCursor: string | null;
}

/** One page of the list of resource templates. */
export interface McpResourceTemplatePage {
  readonly resourceTemplates: readonly McpResourceTemplate[];
  readonly nextCursor: string | null;
}

/** As the server sent it. Only `uri` and `name` are checked. */
interface McpResource {
  readonly uri: string;
  readonly name: string;
  readonly [field: string]: unknown;
}

/** As the server sent it. Only `uriTemplate` and `name` are checked. */
interface McpResourceTemplate {
  readonly uriTemplate: string;
  readonly name: string;
  readonly [field: string]: unknown;
}

/** As the server sent it, with `text` or `blob` (base64). Only `uri` is checked. */
export interface McpResourceContents {
  readonly uri: string;
  readonly [field: string]: unknown;
}

/** Puts a server's question to the user and returns the answer. A person must answer, never a model. */
export type Elicit = (question: ElicitQuestion, options: { signal: AbortSignal }) => Promise<ElicitAnswer>;

/**
 * A question of a server. A `form` asks for values. A `url` asks the person to open a web page, and its
 * answer has no values. All texts come from the server and are untrusted.
 */
export type ElicitQuestion =
  | { kind: "form"; server: string; message: string; fields: readonly ElicitField[] }
  | { kind: "url"; server: string; message: string; url: string };

/** A value that a form asks for. `required`, `title` and the rest come from the server's schema. */
export interface ElicitField {
  readonly name: string;
  readonly title: string | null;
  readonly description: string | null;
  readonly required: boolean;
  readonly value: ElicitValueKind;
}

/** What a value of a form may be. */
export type ElicitValueKind =
  | {
      type: "string";
      minLength: number | null;
      maxLength: number | null;
      format: string | null;
      default: string | null;
    }
  | {
      type: "number" | "integer";
      minimum: number | null;
      maximum: number | null;
      default: number | null;
    }
  | { type: "boolean"; default: boolean | null }
  /** One of the choices. */
  | { type: "choice"; choices: readonly ElicitChoice[]; default: string | null }
  | {
      type: "choices";
      choices: readonly ElicitChoice[];
      minItems: number | null;
      maxItems: number | null;
      default: readonly string[];
    };

/** One of the values that a form offers. A person reads the title. */
export interface ElicitChoice {
  readonly value: string;
  readonly title: string;
}

/** The person's answer. */
export type ElicitAnswer =
  | { action: "accept"; content: Readonly<Record<string, string | number | boolean | readonly string[]>> }
  | { action: "decline" | "cancel" };
