import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

/**
 * Sends an order to a program beside this one and resolves to what it replies, once it has ended. In a process of its own, since what
 * other benches left in the heap would blur the figures.
 */
export async function measureInOwnProcess(
  program: string,
  order: object,
  signal: AbortSignal,
): Promise<unknown> {
  const child = fork(fileURLToPath(new URL(program, import.meta.url)), {
    signal,
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  // An interruption is an error of the child too, also while nobody waits for it.
  child.on("error", () => undefined);
  const reply = once(child, "message");
  const early = once(child, "exit").then(([code]) => {
    throw new Error(`${program} ended with ${code} before it had measured anything`);
  });
  child.send(order);
  const [measures] = await Promise.race([reply, early]);
  await once(child, "exit");
  return measures;
}
