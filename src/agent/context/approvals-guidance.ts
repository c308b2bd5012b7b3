import type { ApprovalPolicy } from "../../sandbox/index.js";
import { nameOfPolicy } from "../../sandbox/index.js";

/**
 * Explains the approval policy to the model: who is asked about what, and how to ask to leave the sandbox.
 * `isRestricted`: false if the sandbox itself has full access. Default: true.
 */
export function approvalGuidance(policy: ApprovalPolicy, { isRestricted = true } = {}): string {
  const meaning = isRestricted ? meaningOf(policy) : meaningWithFullAccess(policy);
  return `\`approval_policy\` is \`${nameOfPolicy(policy)}\`: ${meaning}`;
}

function meaningOf(policy: ApprovalPolicy): string {
  if (typeof policy === "object")
    return policy.granular.sandbox_approval ? granularThatAsks : granularThatRefuses;
  return meanings[policy];
}

function meaningWithFullAccess(policy: ApprovalPolicy): string {
  const whole = "Commands have full access from the start, so there is no sandbox to ask to leave.";
  if (policy === "never") return `nobody is asked. ${whole}`;
  if (policy === "untrusted") return `${untrustedAsks} ${whole}`;
  const isRefused = typeof policy === "object" && !policy.granular.sandbox_approval;
  return isRefused
    ? `nobody is asked; commands that look destructive, such as \`rm -rf\`, are refused. ${whole}`
    : `the user is asked about commands that look destructive, such as \`rm -rf\`. ${whole}`;
}

const noRequest =
  "You cannot ask to leave the sandbox: a call with `sandbox_permissions` set to `require_escalated` is refused.";

const whatEscalatedMeans =
  "What leaves the sandbox runs as root, with a network, in a second container of the same image: it shares the working directory and " +
  "the writable roots with the sandbox, and nothing else, neither /tmp nor running commands. Names that the sandbox holds read-only in them, such as `.git`, are read-only there too. What it leaves running is ended with it.";

const untrustedAsks =
  "the user is asked about every command but those that are known to only read, such as `ls`, `cat` or `rg`, and about " +
  "every patch. Use the commands that only read for looking around, one at a time or joined by `&&`, `||`, `;` or `|`, without " +
  "redirections, variables, substitutions, `~` and file name patterns. `git` is asked about: it starts programs that a repository names.";

const meanings: Record<Exclude<ApprovalPolicy, object>, string> = {
  never:
    "nobody is asked. Every command runs in the sandbox, and what the sandbox does not let through fails: find another way to do it. " +
    `Commands that look destructive, such as \`rm -rf\`, are refused. ${noRequest}`,
  "on-request": `commands run in the sandbox, and you decide when to ask for more. The user is asked, and can refuse, when you set \`sandbox_permissions\` to \`require_escalated\`. ${whatEscalatedMeans}

Ask when the task needs it and the sandbox stands in the way: to write outside the writable roots, to install something from the network, or after a command that matters failed with an error that comes from the sandbox, such as "Read-only file system" or "Network is unreachable". Do so in the call itself, without a message to the user before it:
- \`sandbox_permissions\`: "require_escalated"
- \`justification\`: one short question to the user that says what the command does and why it is needed.
- \`prefix_rule\`: optional; the first words of the command, where the user may want to allow all that begin so, such as ["npm", "install"]. Never a general one such as ["python3"], and never for something destructive.

Do not ask for what can be done inside the sandbox, and do not try to get around a refusal. Commands that look destructive, such as \`rm -rf\`, are asked about too.`,
  "on-failure":
    "commands run in the sandbox. When one fails because of the sandbox, the user is asked whether it may run again outside of it, and " +
    `you get the output of that run. Commands that look destructive, such as \`rm -rf\`, are asked about first. ${whatEscalatedMeans} ${noRequest}`,
  untrusted:
    `${untrustedAsks} An approved command runs in the sandbox; where the sandbox makes it fail, the user is asked whether it may run ` +
    `again outside of it, and you get the output of that run. ${whatEscalatedMeans} ${noRequest}`,
};

const granularThatAsks =
  "commands run in the sandbox. The user is asked about those that look destructive, such as `rm -rf`, and, when one fails because of the " +
  `sandbox, whether it may run again outside of it. ${whatEscalatedMeans} ${noRequest}`;

const granularThatRefuses =
  "nobody is asked about commands. Every command runs in the sandbox, and what the sandbox does not let through fails. Commands that " +
  `look destructive, such as \`rm -rf\`, are refused. ${noRequest}`;
