// The door of what all commands share: their flags, which become settings, their terminal, and what they print. Other parts import from here only.

export { openBatchImages } from "./batch-images.js";
export { ChangesWork, CopiedText } from "./changes-work.js";
export type { ChosenAgent } from "./chosen-agent.js";
export { chosenAgent } from "./chosen-agent.js";
export { clientInput } from "./client-input.js";
export type {
  CliContext,
  DefineCommand,
  InputStream,
  Interruption,
  OutputChoice,
  OutputStream,
} from "./context.js";
export { describeError, errorAsEvent, errorAsJson } from "./error-text.js";
export { runFlaggedSetup, setUpBeforeTerminal } from "./flagged-setup.js";
export type { AgentFlags } from "./flags/agent-flags.js";
export { addAgentOptions, addModelOptions } from "./flags/agent-flags.js";
export { agentSettings, sessionHost, warningText } from "./flags/agent-settings.js";
export type { ConfigFlags } from "./flags/config-choice.js";
export { addConfigOptions, configChoice } from "./flags/config-choice.js";
export type { LimitFlags } from "./flags/limit-options.js";
export { addLimitOptions, flaggedLimits } from "./flags/limit-options.js";
export { collect, durationArgument, sizeArgument } from "./flags/option-values.js";
export type { SandboxFlags } from "./flags/sandbox-flags.js";
export {
  addContainerOptions,
  addSandboxOptions,
  commandDirectory,
  flaggedSettings,
  READS_ONLY_EGRESS,
  setupNetworkOption,
  setupOption,
} from "./flags/sandbox-flags.js";
export { egressChoice, secretOption } from "./flags/secret-option.js";
export type { VariableFlags } from "./flags/variable-options.js";
export { addVariableOptions, readEnvFiles } from "./flags/variable-options.js";
export type { WaitNotes } from "./given-file.js";
export { decodeGiven, readGivenFile } from "./given-file.js";
export { BuildProgress } from "./image/build-progress.js";
export { chooseImage, chosenAsArguments } from "./image/chosen-image.js";
export {
  closeShown,
  keptNote,
  openFlaggedSandbox,
  openSandbox,
  resumeFlaggedSandbox,
} from "./open-sandbox.js";
export { runOnPipes } from "./piped-session.js";
export type { ControlRecord } from "./ports/control-records.js";
export { controlDirectory, openControlRecords } from "./ports/control-records.js";
export type { ControlReply, ControlRequest } from "./ports/messages.js";
export { readMessage, replyShape, sendMessage } from "./ports/messages.js";
export { portPair, publishedPort, publishOption, publishPorts } from "./ports/published-ports.js";
export type { PublishedPort } from "./ports/sandbox-ports.js";
export { receiptText } from "./receipt-text.js";
export { fitted, flush, isColoured, say, usesColour, write, writeJson, writeTable } from "./render.js";
export { ENDS_WITH_INPUT, noteWait, readInput } from "./streams.js";
export { startTelemetry } from "./telemetry.js";
export { attachTerminal, terminalSize } from "./terminal-session.js";
