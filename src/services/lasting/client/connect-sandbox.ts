import type { Environment } from "../../../lib/env.js";
import type { PortableSandbox } from "../../../sandbox/index.js";
import { HttpCalls } from "../../serve/client/http-calls.js";
import { remoteSandbox } from "../../serve/client/remote-sandbox.js";
import { sandboxSchema } from "../../serve/wire/schemas.js";
import { findLasting, readLasting } from "../home/lasting-records.js";
import { endedError } from "../owner/ended-error.js";
import { OwnerClient } from "./owner-client.js";
import { startOwner } from "./start-owner.js";

/** How long an owner may take until it has gone on with all sandboxes. */
const OWNER_STARTS_MS = 30_000;

/**
 * A lasting sandbox, by its name or id, for a program that neither starts nor ends it. Errors: `sandbox.unknown`; `sandbox.gone` for one that has
 * ended; `config.invalid` if somebody else could answer.
 */
export async function connectSandbox(
  wanted: string,
  { environment, signal }: { environment: Environment; signal?: AbortSignal | undefined },
): Promise<PortableSandbox> {
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
    // It was killed, and so was what should have started the next one, which goes on with the sandbox.
    await startOwner(environment).outcome(OWNER_STARTS_MS);
    found = find();
    if (!(await isThere())) throw endedError({ ...found, reason: "owner-killed" });
  }
  const calls = new HttpCalls({ url: "http://localhost", token: "", socketPath: owner.socket.path });
  const record = await calls.json("getSandbox", sandboxSchema, { id: found.id, signal });
  const letGo = async () => calls.close();
  return { ...remoteSandbox(calls, record), close: letGo, [Symbol.asyncDispose]: letGo };
}
