import { posix } from "node:path";
import type { AgentSettings } from "../../agent/index.js";
import type { AgentFlags, CliContext } from "../../command/index.js";
import { agentSettings } from "../../command/index.js";
import { BrigError } from "../../errors.js";
import type { NetworkScope } from "../../sandbox/index.js";
import { isSandboxMode, parseNetwork } from "../../sandbox/index.js";
import { lastingPlace, lastingSandbox } from "../../services/index.js";
import { ownerNow, runningRecord } from "./exec-in.js";
import { nextOwner } from "./reach-owner.js";

/**
 * The settings of a session that works in a lasting sandbox: the sandbox decides what the flags and the configuration would say of one.
 * Errors: `sandbox.unknown`; `sandbox.gone` for one that has ended; those of `agentSettings`.
 */
export async function settingsWithin(
  wanted: string,
  flags: AgentFlags,
  context: CliContext,
): Promise<AgentSettings> {
  const { name } = runningRecord(wanted, context);
  const place = await lastingPlace(await ownerNow(context), name, context.signal);
  const { mode, network, workspace, image, writableRoots } = place;
  const policy = isSandboxMode(mode) ? { mode } : { policyFile: place.policyFile };
  const settings = await agentSettings({ ...flags, cd: undefined, env: undefined }, context);
  return {
    ...settings,
    sandbox: {
      ...{ ...policy, network, image, workspace, git: "protected" },
      workspaceKind: workspace === null ? "none" : "bind",
    },
    within: {
      name,
      hasOwnFiles: place.snapshotId !== null,
      setting: {
        cwd: posix.resolve(place.workingDirectory, flags.cd ?? ""),
        ...{ sandboxMode: mode, network: networkOf(network), writableRoots },
      },
      async open() {
        // By its id: meanwhile another sandbox may have got the name.
        const record = runningRecord(place.id, context);
        const owner = await ownerNow(context);
        const onOwnerGone = async () => await nextOwner(context);
        return lastingSandbox(owner, { name: record.name, place, env: flags.env ?? {}, onOwnerGone });
      },
    },
  };
}

function networkOf(text: string): NetworkScope {
  const parsed = parseNetwork(text);
  if (parsed.kind === "parsed") return parsed.network;
  throw new BrigError(`the network of the sandbox is not understood: ${parsed.reason}`, {
    code: "serve.failed",
    hint: "it may be one of another version of brig: end it with brig rm, and start it again",
  });
}
