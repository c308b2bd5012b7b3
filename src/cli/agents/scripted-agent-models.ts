import type { AgentModelChoice, ModelClient, Script } from "../../agent/index.js";
import { createScriptedClient } from "../../agent/index.js";

/** Gives each agent the next script from the `agents` list of the script that its parent plays. */
export function scriptedAgentModels(
  script: Script,
  { threadId }: { threadId: string },
): (choice: AgentModelChoice) => Promise<ModelClient> {
  const scripts = new Map([[threadId, { script, next: 0 }]]);
  const clients = new Map<string, ModelClient>();
  return ({ threadId: id, parentId }) => {
    const known = clients.get(id);
    if (known !== undefined) return Promise.resolve(known);
    const parent = scripts.get(parentId);
    const own = parent?.script.agents?.[parent.next] ?? { file: script.file, steps: [] };
    if (parent !== undefined) parent.next++;
    scripts.set(id, { script: own, next: 0 });
    const client = createScriptedClient(own);
    clients.set(id, client);
    return Promise.resolve(client);
  };
}
