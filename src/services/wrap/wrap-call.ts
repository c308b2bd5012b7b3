import { resolve } from "node:path";
import type { CliContext } from "../../command/index.js";
import { knownAgents } from "./agents/known-agents.js";
import type { PreparedAgent } from "./agents/prepare-agent.js";
import type { SessionRecord } from "./sessions/session-record.js";
import type { WrapFlags } from "./wrap-flags.js";

/** A command to wrap, with its flags. */
export interface WrapCall {
  argv: readonly string[];
  flags: WrapFlags;
  /** The absolute path that relative paths of the flags refer to. It is also the workspace if no other is given. */
  directory: string;
}

/** The call of a resumed session: flags that are given now replace those that the session was begun with. */
export function resumedCall(
  { argv, flags }: Pick<WrapCall, "argv" | "flags">,
  record: SessionRecord,
  { cwd }: Pick<CliContext, "cwd">,
): WrapCall {
  const earlier: WrapFlags = { ...record.flags };
  if (flags.policy !== undefined) delete earlier.sandbox;
  if (flags.sandbox !== undefined) delete earlier.policy;
  return {
    argv: argv.length > 0 ? argv : continued(record),
    flags: { ...earlier, ...withAbsolutePaths(flags, cwd) },
    directory: record.directory,
  };
}

/** A known agent is started so that it continues its last session, any other command as it was started before. */
function continued({ agent, command }: SessionRecord): readonly string[] {
  const known = knownAgents.find(({ name }) => name === agent);
  const [program] = command;
  return known === undefined || program === undefined ? command : [program, ...known.continueArguments];
}

/** The record of a session. It has no variables of `--env`, which may be secrets, and no set-up, which is over. */
export function recordOf(
  { argv, flags, directory }: WrapCall,
  { agent }: PreparedAgent,
  earlier: SessionRecord | null,
): SessionRecord {
  const now = new Date().toISOString();
  const { name: _name, resume: _resume, env: _env, publish: _publish, json: _json, ...lasting } = flags;
  const { setup: _setup, setupNetwork: _network, ...kept } = lasting;
  const { configDir, ...rest } = kept;
  return {
    agent: agent?.name ?? null,
    command: [...(earlier?.command ?? argv)],
    directory,
    // The configuration is copied once, unless the user asks for it again.
    flags: { ...withAbsolutePaths(configDir === "copy" ? rest : kept, directory) },
    isConfigured: true,
    createdAt: earlier?.createdAt ?? now,
    usedAt: now,
    exitCode: earlier?.exitCode ?? null,
  };
}

/** Without a workspace, `--cd` names a directory of the sandbox. */
function withAbsolutePaths(flags: WrapFlags, directory: string): WrapFlags {
  const { cd, policy, addDir, workspace } = flags;
  return {
    ...flags,
    ...(cd !== undefined && workspace !== "none" && { cd: resolve(directory, cd) }),
    ...(policy !== undefined && { policy: resolve(directory, policy) }),
    ...(addDir !== undefined && { addDir: addDir.map((one) => resolve(directory, one)) }),
  };
}
