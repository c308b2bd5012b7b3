import type { Environment } from "../../../lib/env.js";
import { pause } from "../../../lib/time/pause.js";
import type { ConnectedSandbox } from "../../../sandbox/index.js";
import { HttpCalls } from "../../serve/client/http-calls.js";
import { remoteSandbox } from "../../serve/client/remote-sandbox.js";
import { sandboxSchema } from "../../serve/wire/schemas.js";
import { findLasting, readLasting } from "../home/lasting-records.js";
import { endedError } from "../owner/ended-error.js";
import { OwnerClient } from "./owner-client.js";
import { hasOwner, startOwner } from "./start-owner.js";

/** How long an owner may take until it has gone on with all sandboxes. */
const OWNER_STARTS_MS = 30_000;

/**
 * A lasting sandbox, by its name or id, for a program that neither starts nor ends it. Errors: `sandbox.unknown`; `sandbox.gone` for one that has
 * ended; `config.invalid` if somebody else could answer.
 */
export async function connectSandbox(
  wanted: string,
  { environment, signal }: { environment: Environment; signal?: AbortSignal | undefined },
): Promise<ConnectedSandbox> {
  signal?.throwIfAborted();
  const { brigHome } = environment;
  const find = () => {
    const found = findLasting(readLasting(brigHome), wanted);
    if (found.state === "stopped") throw endedError(found);
    return found;
  };
  let found = find();
  const owner = new OwnerClient(brigHome);
  const isThere = async () => (await owner.state(signal ?? new AbortController().signal)) !== null;
  if (!(await isThere())) {
    await nextOwner(environment, isThere);
    found = find();
    if (!(await isThere())) throw endedError({ ...found, reason: "owner-killed" });
  }
  const calls = new HttpCalls({ url: "http://localhost", token: "", socketPath: owner.socket.path });
  const record = await calls.json("getSandbox", sandboxSchema, { id: found.id, signal });
  const letGo = async () => calls.close();
  return { ...remoteSandbox(calls, record), close: letGo, [Symbol.asyncDispose]: letGo };
}

const LOOK_MS = 20;

/** Waits for the owner that follows one which was killed, and starts it if what should have done so was killed, too. */
async function nextOwner(environment: Environment, isThere: () => Promise<boolean>): Promise<void> {
  for (const endsAt = performance.now() + OWNER_STARTS_MS; performance.now() < endsAt; ) {
    if (await isThere()) return;
    if (!(await hasOwner(environment.brigHome)))
      return void (await startOwner(environment).outcome(OWNER_STARTS_MS));
    await pause(LOOK_MS);
  }
}
