import "./jitless.js";
import { type Command, InvalidArgumentError, Option } from "commander";
import type { ConfigChoice } from "../../config/settings/load-config.js";
import { APPROVAL_POLICIES, type ApprovalPolicy, parseApprovalPolicy } from "../../policy/approval-policy.js";
import type { SandboxMode } from "../../policy/modes.js";
import { addConfigOptions } from "./config-choice.js";
import { collect } from "./option-values.js";
import { addSandboxOptions, type SandboxFlags } from "./sandbox-flags.js";
import { DEFAULT_MODEL } from "./tool-settings.js";

/** The flags of every command that has a model at work. */
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
  /** No flag: what a program that stands in for another one does where nothing is said. */
  caller?: CallerDefaults;
}

/** What holds for a program with a command line of its own where neither its flags nor the configuration say it. */
export interface CallerDefaults {
  /** Where neither a mode nor a policy is chosen. Default: workspace-write. */
  mode?: SandboxMode | undefined;
  /** Who the endpoint is told is asking. Default: brig. */
  originator?: string | undefined;
  /** Whether config.toml of the user's own directories is left unread. */
  ignoresUserConfig?: boolean | undefined;
}

export function addAgentOptions(command: Command): Command {
  return addConfigOptions(addSandboxOptions(command))
    .addOption(
      new Option(
        "-a, --ask-for-approval <policy>",
        `when a person is asked: ${APPROVAL_POLICIES.join(", ")} (default: never; in a conversation on-request)`,
      ).argParser(approvalPolicy),
    )
    .option("-m, --model <name>", `the model to ask (default: the configuration's, else ${DEFAULT_MODEL})`)
    .addOption(
      new Option("-i, --image <file>", "a picture for the model; may be repeated").argParser(collect),
    )
    .option("--instructions-file <file>", "the model's base instructions, in place of brig's own")
    .option("--output-schema <file>", "a JSON Schema for the final message")
    .option("--script <file>", "play a script instead of asking a model")
    .option("--ephemeral", "keep no record of the session")
    .option(
      "--no-tree-record",
      "do not record what the workspace holds at the end, for brig replay to compare",
    );
}

/** What flags say of keys that config.toml has too. */
export function configuredFlags(flags: AgentFlags): NonNullable<ConfigChoice["flags"]> {
  return {
    model: { flag: "--model", value: flags.model },
    approval_policy: { flag: "--ask-for-approval", value: flags.askForApproval },
    sandbox_mode: { flag: "--sandbox", value: flags.sandbox },
    policy: { flag: "--policy", value: flags.policy },
    network: { flag: "--network", value: flags.network },
    container_image: { flag: "--container-image", value: flags.containerImage },
    runtime: { flag: "--runtime", value: flags.runtime },
  };
}

function approvalPolicy(name: string): ApprovalPolicy {
  const parsed = parseApprovalPolicy(name);
  if (parsed.kind === "refused") throw new InvalidArgumentError(parsed.reason);
  return parsed.policy;
}
