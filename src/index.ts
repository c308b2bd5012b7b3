export type { AgentSandbox, SandboxSource } from "./agent/agent-sandbox.js";
export type { AgentEvent, AgentListener } from "./agent/events.js";
export type { SessionSetting } from "./agent/prompt.js";
export type { AgentResult, RunAgentOptions } from "./agent/run-agent.js";
export { runAgent } from "./agent/run-agent.js";
export type { SessionFileOptions, SessionLog } from "./agent/session-file.js";
export { openSessionFile } from "./agent/session-file.js";
export type { BrigErrorOptions, ErrorCode, GoneReason } from "./errors.js";
export { BrigError, isBrigError } from "./errors.js";
export type { ModelClient, ModelEvent, ModelRequest, TokenUsage } from "./model/model-client.js";
export type { ModelProvider } from "./model/provider.js";
export type { ResponsesClientOptions } from "./model/responses-client.js";
export { createResponsesClient } from "./model/responses-client.js";
export { loadScript } from "./model/script.js";
export { createScriptedClient } from "./model/scripted-client.js";
export type { SandboxMode } from "./policy/policy.js";
export type { SandboxOptions } from "./sandbox/open-sandbox.js";
export type { Proof } from "./sandbox/proof.js";
export { Sandbox } from "./sandbox/sandbox.js";
export type {
  DirectoryEntry,
  ExecOptions,
  ExecResult,
  ExitStatus,
  FileStat,
  FileType,
  ListOptions,
  PtySize,
  ReadOptions,
  SandboxFiles,
  SandboxProcess,
  SpawnOptions,
} from "./sandbox/types.js";
export type { ExecText, ExecToolResult } from "./tools/exec.js";
export type { FileMatch, FileSearchResult } from "./tools/file-search.js";
export type { ToolOf, ToolRegistry, ToolRegistryOptions } from "./tools/registry.js";
export { createToolRegistry } from "./tools/registry.js";
export type { ToolSandbox } from "./tools/sandbox.js";
export type {
  FileChange,
  OutputPart,
  PlanStep,
  Tool,
  ToolActivity,
  ToolCallOptions,
  ToolOutput,
  ToolSpec,
} from "./tools/tool.js";
