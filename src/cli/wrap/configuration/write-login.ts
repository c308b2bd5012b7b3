import type { Sandbox } from "../../../sandbox/index.js";

/**
 * Logs Codex in with the placeholder of a key, which commands of the sandbox have in a variable. Codex itself does not look
 * for the key of OpenAI in a variable. Each sandbox has another placeholder.
 */
export async function writeLogin(
  sandbox: Sandbox,
  { path, key }: { path: string; key: string },
  { home, signal }: { home: string; signal: AbortSignal },
): Promise<void> {
  const { stdout } = await sandbox.exec(["/bin/sh", "-c", `printf %s "$${key}"`], { signal });
  const target = `${home}/${path}`;
  await sandbox.files.mkdir(target.slice(0, target.lastIndexOf("/")), { recursive: true, signal });
  const login = JSON.stringify({ auth_mode: "apikey", OPENAI_API_KEY: stdout });
  await sandbox.files.write(target, login, { mode: 0o600, signal });
}
