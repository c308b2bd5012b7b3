import type { Sandbox } from "../../src/sandbox/sandbox.js";
import { program } from "./sandbox.js";

/** What runs in the sandbox beside its runner, as command lines. Zombies are left out. */
export async function runningCommands(sandbox: Sandbox): Promise<string[]> {
  return (await listProcesses(sandbox)).filter(({ state }) => state !== "Z").map(({ command }) => command);
}

/** How many processes have ended and were not waited for. */
export async function zombieCount(sandbox: Sandbox): Promise<number> {
  return (await listProcesses(sandbox)).filter(({ state }) => state === "Z").length;
}

async function listProcesses(sandbox: Sandbox): Promise<{ state: string; command: string }[]> {
  const { stdout, stderr } = await sandbox.exec(program("processes.py"));
  if (stderr !== "") throw new Error(stderr);
  const found = JSON.parse(stdout) as [number, string, string][];
  return found.map(([, state, command]) => ({ state, command }));
}
