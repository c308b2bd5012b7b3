import type { CliContext } from "../../../command/index.js";
import { say, writeJson, writeTable } from "../../../command/index.js";
import { homeSizeText, measureHome } from "./home-size.js";
import { listSessions, removeSession } from "./wrapped-sessions.js";

export async function listWrapped(
  { json }: { json?: boolean },
  { environment, stdout, stderr, signal }: CliContext,
): Promise<void> {
  const sessions = [];
  // The homes are measured one after the other, because each measurement reads a whole tree.
  for (const session of await listSessions(environment.brigHome))
    sessions.push({ ...session, size: await measureHome(session.home, Number.POSITIVE_INFINITY, signal) });
  if (json === true) {
    const listed = sessions.map(({ name, isRunning, record, size }) => ({
      name,
      isRunning,
      homeBytes: size.bytes,
      homeFiles: size.entries,
      isHomeSizePartial: size.isPartial,
      agent: record?.agent ?? null,
      command: record?.command ?? null,
      directory: record?.directory ?? null,
      createdAt: record?.createdAt ?? null,
      usedAt: record?.usedAt ?? null,
      exitCode: record?.exitCode ?? null,
    }));
    return await writeJson(stdout, listed);
  }
  if (sessions.length === 0)
    return await say(stderr, "there are no named sessions; brig wrap --name NAME -- COMMAND begins one\n");
  const rows = sessions.map(({ name, isRunning, record, size }) => [
    name,
    homeSizeText(size),
    record === null ? "unreadable" : isRunning ? "running" : `exit ${record.exitCode ?? "unknown"}`,
    record?.usedAt ?? "",
    record?.directory ?? "",
    record?.command.join(" ") ?? "",
  ]);
  await writeTable(stdout, [["NAME", "HOME", "STATE", "LAST USED", "DIRECTORY", "COMMAND"], ...rows]);
}

export async function removeWrapped(name: string, { environment, stderr }: CliContext): Promise<void> {
  await removeSession(environment.brigHome, name);
  await say(stderr, `removed ${name}\n`);
}
