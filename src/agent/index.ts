// The door of the agent: turns and sessions, the clients of models and of MCP servers, and the settings that a conversation is opened with. Other
// parts import from here only.

export type { AgentSandbox, SandboxSource } from "./agent-sandbox.js";
export type { AgentPlacement } from "./agents/agent-label.js";
export type { AgentsOptions } from "./agents/agents-options.js";
export type { ApprovalAnswer, ApprovalRequest, Approver } from "./approvals/approvals.js";
export { QuestionQueue } from "./approvals/question-queue.js";
export { openAside } from "./aside.js";
export type { CompactionOptions } from "./compaction/compactor.js";
export type { Config, McpServerConfig } from "./config/config-schema.js";
export { DEFAULT_MODEL } from "./config/config-schema.js";
export { editedConfig, INITIAL_CONFIG, missingConfig } from "./config/edit-config.js";
export type { KeyPath } from "./config/key-path.js";
export { formatKey, KEY_PATTERN, parseKey } from "./config/key-path.js";
export type { McpServerInput } from "./config/mcp-servers-schema.js";
export type { DescribedValue } from "./config/settings/describe-config.js";
export { describeConfig } from "./config/settings/describe-config.js";
export type { ConfigChoice, LoadedConfig } from "./config/settings/load-config.js";
export {
  checkConfigText,
  configFiles,
  configKey,
  configValue,
  loadConfig,
  parseOverride,
} from "./config/settings/load-config.js";
export { describeSource } from "./config/settings/sources.js";
export { keyLines, parseToml } from "./config/toml-document.js";
export type { ContextOptions } from "./context/context-messages.js";
export { openConversation } from "./conversation.js";
export type {
  CompactionResult,
  Conversation,
  ConversationOptions,
  ModelChange,
  SettingChange,
  TurnInput,
  TurnResult,
} from "./conversation-options.js";
export { functionGates } from "./function-gates.js";
export { JsonEvents } from "./jsonl-events.js";
export { missingVariable, serverOpener, startupTimeoutMs } from "./mcp/configured-servers.js";
export type { ClientProvider, OwnClientOptions } from "./model/create-model-client.js";
export { createModelClient } from "./model/create-model-client.js";
export type { ConnectionOptions } from "./model/endpoint/connection.js";
export type { ModelClientOptions } from "./model/endpoint/endpoint-client.js";
export type { OpenAIClient } from "./model/endpoint/openai-client.js";
export type { CallOutput, MessageItem, ResponseItem } from "./model/items.js";
export { calledTool, isToolCall, isToolOutput, messageText, outputText } from "./model/items.js";
export { logInWithBrowser } from "./model/login/browser-login.js";
export { logInWithCode } from "./model/login/device-login.js";
export { expiryOf, identityOf } from "./model/login/issuer/id-token.js";
export type { IssuerSettings } from "./model/login/issuer/issuer-settings.js";
export { issuerSettings } from "./model/login/issuer/issuer-settings.js";
export { logOut } from "./model/login/log-out.js";
export type { LoginStatus, StoredStatus } from "./model/login/login-status.js";
export { loginStatus } from "./model/login/login-status.js";
export { openLogin } from "./model/login/open-login.js";
export { parseApiKey, storeApiKey, storeTokens } from "./model/login/store-login.js";
export type {
  ModelClient,
  ModelEvent,
  ModelRequest,
  TokenUsage,
  ToolDeclaration,
} from "./model/model-client.js";
export { noUsage, usageTogether } from "./model/model-client.js";
export { profileOf } from "./model/model-profile.js";
export type { ModelSettings } from "./model/model-settings.js";
export { REASONING_EFFORTS } from "./model/model-settings.js";
export { observedModel } from "./model/observed-model.js";
export { costOfRequest, priceOfModel } from "./model/prices/model-price.js";
export type { Credentials, ModelProvider, WireApi } from "./model/provider.js";
export { configuredWireApi } from "./model/resolve-provider.js";
export type { Script, ScriptOptions, ScriptStep } from "./model/script/script.js";
export { loadScript } from "./model/script/script.js";
export { createScriptedClient } from "./model/script/scripted-client.js";
export { bearerKey, noCredentials } from "./model/static-credentials.js";
export type { AgentSettings, CallerDefaults, SessionHost } from "./open/agent-settings.js";
export { configuredModels } from "./open/configured-models.js";
export { configuredGates, exploreTools } from "./open/configured-options.js";
export type { EarlierSession } from "./open/earlier-session.js";
export { openEarlierSession } from "./open/earlier-session.js";
export { openModel } from "./open/open-models.js";
export type { ModelChoice, OtherModels, PreparedSession } from "./open/prepare-session.js";
export { prepareSession } from "./open/prepare-session.js";
export { projectHosts } from "./open/remembered-hosts.js";
export { resolveRun } from "./open/run-settings.js";
export { readStructuredOutput } from "./replay/output-parts.js";
export type { Recording } from "./replay/replay-recording.js";
export { readRecording } from "./replay/replay-recording.js";
export type { ReplayReport } from "./replay/replay-session.js";
export { isSame, replaySession, workDirectory } from "./replay/replay-session.js";
export type { AgentResult, RunAgentOptions } from "./run-agent.js";
export { runAgent } from "./run-agent.js";
export { atifDocument } from "./session/export-atif.js";
export type { SessionFileEntry, SessionHead, SessionSummary } from "./session/read/session-index.js";
export {
  agentsOf,
  findLastSession,
  findSession,
  findSessionFiles,
  sessionPages,
  summarise,
  summariseAll,
} from "./session/read/session-index.js";
export type { ReadRecord, SessionLine, SessionMeta, TurnSettings } from "./session/read/session-lines.js";
export { readSessionLines } from "./session/read/session-lines.js";
export type { RecordedSession, SessionProof } from "./session/read/session-reader.js";
export {
  egressOf,
  isPrompt,
  loadSession,
  proofsOf,
  WorkspaceReading,
} from "./session/read/session-reader.js";
export type {
  AgentStep,
  ChangingStep,
  MessageStep,
  SessionStep,
  StepCall,
} from "./session/read/session-steps.js";
export { changingSteps, stepsOf } from "./session/read/session-steps.js";
export type { SessionBranchArrival, SessionReceipt } from "./session/receipts.js";
export { Receipts } from "./session/receipts.js";
export type { SessionRestorePoint } from "./session/restore-point.js";
export type { ForkedSession } from "./session/session-fork.js";
export { forkSession } from "./session/session-fork.js";
export type { SentContext, SessionSetting } from "./session/setting.js";
export type { SessionFamily } from "./session/write/delete-session.js";
export { deleteFamily, deleteWithAgents } from "./session/write/delete-session.js";
export type { SessionFileOptions, SessionLog, SessionRecord } from "./session/write/session-file.js";
export { openSessionFile } from "./session/write/session-file.js";
export { sandboxPolicy, wireDisk } from "./session/write/session-records.js";
export type { McpSession } from "./session-servers.js";
export type { SessionSetup } from "./setup/setup-options.js";
export { inSpan } from "./telemetry/conversation-telemetry.js";
export { exportTelemetry } from "./telemetry/export-telemetry.js";
export { telemetrySettings } from "./telemetry/telemetry-settings.js";
export { createThreadId } from "./thread-id.js";
export type { CallEvent, CallPart, CallSoFar, CommandSoFar } from "./turn/calls-so-far.js";
export { CallsSoFar } from "./turn/calls-so-far.js";
export type { AgentEvent, AgentListener } from "./turn/events.js";
