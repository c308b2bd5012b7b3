import type { Calls } from "../http/response.js";
import { requireNetwork } from "./replace-network.js";
import type { SandboxSet } from "./sandbox-set.js";

/** How requests are answered that change what a sandbox is allowed while it runs. Errors of all: `serve.unknown`; `sandbox.gone`. */
export function settingCalls(
  sandboxes: SandboxSet,
  places: { allowsNetwork: boolean },
): Pick<Calls, "extendSandbox" | "setNetwork"> {
  return {
    async extendSandbox({ client, id, body }) {
      const sandbox = sandboxes.get(client, id);
      sandbox.extend(body.lifeMs);
      return { kind: "json", value: sandbox.record };
    },
    async setNetwork({ client, id, body }) {
      const sandbox = sandboxes.get(client, id);
      requireNetwork(body.network, places);
      sandbox.setNetwork(body.network);
      return { kind: "json", value: sandbox.record };
    },
  };
}
