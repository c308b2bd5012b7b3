import type { Sandbox, SandboxSettings } from "../../sandbox/index.js";
import type { CliContext } from "../context.js";
import { publishPorts } from "../ports/published-ports.js";
import type { PublishedPort } from "../ports/sandbox-ports.js";
import { say } from "../render.js";
import { keptNote, openSandbox } from "../setup/open-sandbox.js";
import type { WorkspaceStart } from "./resumed-workspace.js";

/** Opens a sandbox of a session. */
export type OpenSessionSandbox = (settings: SandboxSettings) => Promise<Sandbox>;

interface SessionPlace extends Pick<WorkspaceStart, "from"> {
  threadId: string;
  /** The ports to publish for the first sandbox, and after its end for the next one. */
  publish: readonly PublishedPort[] | undefined;
}

/**
 * Opens the sandboxes of a session, which share a workspace. The first one that starts brings it into its first state,
 * and later ones use it as it is.
 */
export function sessionSandboxes(
  { from, threadId, publish }: SessionPlace,
  context: CliContext,
): OpenSessionSandbox {
  let isMade = from === null;
  let hasPorts = false;
  return async (settings) => {
    const sandbox = await openSandbox(() => settings, context, isMade ? null : from);
    isMade = true;
    if (settings.keep) await say(context.stderr, keptNote(sandbox));
    const isFirst = !hasPorts;
    hasPorts = true;
    try {
      await publishPorts(
        sandbox,
        {
          publish: isFirst ? publish : [],
          session: threadId,
          command: "brig run",
          onClose: () => {
            if (isFirst) hasPorts = false;
          },
        },
        context,
      );
    } catch (error) {
      await sandbox[Symbol.asyncDispose]();
      throw error;
    }
    return sandbox;
  };
}
