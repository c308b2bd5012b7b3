import { type Command, InvalidArgumentError } from "commander";
import type { CallerDefaults } from "../../agent/index.js";
import { DEFAULT_MODEL } from "../../agent/index.js";
import type { ApprovalPolicy } from "../../sandbox/index.js";
import { APPROVAL_POLICIES, parseApprovalPolicy } from "../../sandbox/index.js";
import type { PublishedPort } from "../ports/sandbox-ports.js";
import { addConfigOptions } from "./config-choice.js";
import { collect } from "./option-values.js";
import { addSandboxOptions, type SandboxFlags } from "./sandbox-flags.js";

/** The flags of every command that runs a model. */
export interface AgentFlags extends SandboxFlags {
  askForApproval?: ApprovalPolicy;
  model?: string;
  profile?: string;
  config?: string[];
  outputSchema?: string;
  instructionsFile?: string;
  script?: string;
  image?: string[];
  ephemeral?: boolean;
  treeRecord?: boolean;
  publish?: PublishedPort[];
  /** Not a flag: the defaults of a program that replaces another one, such as `codex`. */
  caller?: CallerDefaults;
}

export function addAgentOptions(command: Command): Command {
  return addModelOptions(addConfigOptions(addSandboxOptions(command)), "never; on-request in a conversation")
    .option("-i, --image <file>", "an image for the model; may be repeated", collect)
    .option("--instructions-file <file>", "a file with base instructions that replace brig's own")
    .option("--output-schema <file>", "a file with the JSON Schema that the final message must follow")
    .option("--script <file>", "play the replies in a script instead of calling a model")
    .option("--ephemeral", "do not save the session")
    .option(
      "--no-tree-record",
      "do not record the final state of the workspace, which brig replay compares with",
    );
}

/** The options for the model and the approval policy. `usualApproval` is the default policy, for the help. */
export function addModelOptions(command: Command, usualApproval: string): Command {
  return command
    .option(
      "-a, --ask-for-approval <policy>",
      `when brig asks a person for approval: ${APPROVAL_POLICIES.join(", ")} (default: ${usualApproval})`,
      approvalPolicy,
    )
    .option("-m, --model <name>", `the model to use (default: the configuration's, else ${DEFAULT_MODEL})`);
}

function approvalPolicy(name: string): ApprovalPolicy {
  const parsed = parseApprovalPolicy(name);
  if (parsed.kind === "refused") throw new InvalidArgumentError(parsed.reason);
  return parsed.policy;
}
