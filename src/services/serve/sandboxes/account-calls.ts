import type { Calls } from "../http/response.js";
import type { SandboxSet } from "./sandbox-set.js";

/** How requests are answered that ask for an account of a sandbox: its proof, its receipt, and what it tried to reach. */
export function accountCalls(sandboxes: SandboxSet): Pick<Calls, "getProof" | "getReceipt" | "getEgress"> {
  return {
    getProof: async ({ client, id, signal }) => ({
      kind: "json",
      value: await sandboxes.get(client, id).use(signal, async ({ sandbox }) => sandbox.proof),
    }),
    getReceipt: async ({ client, id }) => ({ kind: "json", value: sandboxes.receipt(client, id) }),
    getEgress: async ({ client, id, memory }) => {
      const answer = sandboxes.get(client, id).egressLog;
      memory.take(Buffer.byteLength(JSON.stringify(answer)));
      return { kind: "json", value: answer };
    },
  };
}
