export type { AgentSandbox, SandboxSource } from "./agent/agent-sandbox.js";
export type { ApprovalAnswer, ApprovalRequest, Approver } from "./agent/approvals/approvals.js";
export { openConversation } from "./agent/conversation.js";
export type {
  Conversation,
  ConversationOptions,
  SettingChange,
  TurnInput,
  TurnResult,
} from "./agent/conversation-options.js";
export type { AgentResult, RunAgentOptions } from "./agent/run-agent.js";
export { runAgent } from "./agent/run-agent.js";
export type { AgentEvent, AgentListener } from "./agent/turn/events.js";
export type { BrigErrorOptions, ErrorCode, GoneReason } from "./errors.js";
export { BrigError, isBrigError } from "./errors.js";
export { createModelClient } from "./model/create-model-client.js";
export type { ModelClientOptions } from "./model/endpoint/endpoint-client.js";
export type { ModelClient, ModelEvent, ModelRequest, TokenUsage } from "./model/model-client.js";
export type { Credentials, ModelProvider, WireApi } from "./model/provider.js";
export { loadScript } from "./model/script/script.js";
export { createScriptedClient } from "./model/script/scripted-client.js";
export { bearerKey, noCredentials } from "./model/static-credentials.js";
export type { OutputPart } from "./output/output-part.js";
export type { ApprovalPolicy } from "./policy/approval-policy.js";
export type { SandboxMode } from "./policy/modes.js";
export type { SessionAuthority } from "./policy/session-authority.js";
export type { Proof } from "./sandbox/proof/proof.js";
export type { Finding, FindingReason, Receipt } from "./sandbox/receipt/receipt.js";
export { Sandbox } from "./sandbox/sandbox.js";
export type { SandboxOptions } from "./sandbox/sandbox-options.js";
export type {
  DirectoryEntry,
  ExecOptions,
  ExecResult,
  ExitStatus,
  FilePart,
  FileStat,
  FileType,
  FileWrite,
  ListOptions,
  PathOptions,
  PtySize,
  ReadOptions,
  SandboxFiles,
  SandboxProcess,
  SpawnOptions,
  StartFailure,
  WritesDone,
} from "./sandbox/sandbox-types.js";
export type { SessionSetting } from "./session/setting.js";
export type { SessionFileOptions, SessionLog } from "./session/write/session-file.js";
export { openSessionFile } from "./session/write/session-file.js";
export type { ToolName, ToolOf } from "./tools/catalogue.js";
export type { ExecText, ExecToolResult } from "./tools/command/exec-tool.js";
export type { FileMatch, FileSearchResult } from "./tools/files/file-search.js";
export type { ToolRegistry, ToolRegistryOptions } from "./tools/registry.js";
export { createToolRegistry } from "./tools/registry.js";
export type { FileChange } from "./tools/review/action.js";
export type { PlanStep, Tool, ToolActivity, ToolCallOptions, ToolOutput, ToolSpec } from "./tools/tool.js";
export type { ToolSandbox } from "./tools/tool-sandbox.js";
