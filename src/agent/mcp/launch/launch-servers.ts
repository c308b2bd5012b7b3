import { BrigError } from "../../../errors.js";
import { beforeAbort } from "../../../lib/time/before-abort.js";
import type { ToolSandbox } from "../../../tools/index.js";
import type { LaunchServer, ServerPlace } from "../client/server-process.js";
import type { OwnContainerOptions } from "./own-container.js";

export interface LaunchOptions extends OwnContainerOptions {
  /** The sandbox of the session. It may still be starting. */
  sandbox: Promise<Pick<ToolSandbox, "spawn">>;
  /** Absolute path of the session's working directory. */
  directory: string;
  /** The environment variables of this machine. Only servers that run on this machine get some of them. */
  variables: Readonly<Record<string, string>>;
}

/** Returns a function that starts each server in the place that `places` gives it. */
export function serverLauncher(
  places: Readonly<Record<string, ServerPlace>>,
  options: LaunchOptions,
): LaunchServer {
  const { directory, variables } = options;
  return async (name, command, { signal }) => {
    const place = Object.hasOwn(places, name) ? places[name] : undefined;
    switch (place?.kind) {
      case "own": {
        const { startInOwnContainer } = await import("./own-container.js");
        return await startInOwnContainer(name, command, { ...options, place, signal });
      }
      case "session": {
        const { startIn } = await import("./sandboxed-server.js");
        return await startIn(await beforeAbort(options.sandbox, signal), command, { directory });
      }
      case "host": {
        const { startOnHost } = await import("./host-process.js");
        return await startOnHost(command, { directory, variables, signal });
      }
      case undefined:
        throw new BrigError(`nothing says where the MCP server ${name} runs`, { code: "usage.invalid" });
      default:
        return place satisfies never;
    }
  };
}
