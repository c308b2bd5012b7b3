import { BrigError, invalidUsage } from "../../../errors.js";
import type { HostMount, Sandbox } from "../../../sandbox/index.js";
import { placeholderLogin } from "../agents/codex-login.js";
import { CHATGPT_ACCOUNT, CHATGPT_TOKEN, type InsideLogin } from "../agents/prepare-agent.js";
import type { Configuration, ConfigurationFile } from "./collect-files.js";

/** The directory in the sandbox into which configuration of the host is mounted. */
const MOUNTED_PATH = "/opt/brig-agent-configuration";

/** Writes the files into the agent's home from inside, so that nothing on the host follows links that the agent has put there. */
export async function copyConfiguration(
  sandbox: Sandbox,
  { files }: Configuration,
  { home, signal }: { home: string; signal: AbortSignal },
): Promise<void> {
  for (const { path, text } of files) {
    const target = `${home}/${path}`;
    await sandbox.files.mkdir(target.slice(0, target.lastIndexOf("/")), { recursive: true, signal });
    await sandbox.files.write(target, text, { signal });
  }
}

/** The mounts of the files that are mounted as they are. Error: `usage.invalid` if one has to be changed first. */
export function mountsOf({ files }: Configuration): HostMount[] {
  const changed = files.find(({ isUnchanged }) => !isUnchanged);
  if (changed !== undefined)
    throw invalidUsage(
      `${changed.path} cannot be mounted as it is`,
      "it has a setting that looks like a credential, or names a model on this machine by an address of loopback; --config-dir copy leaves such things out or changes them",
    );
  return files.map(({ hostPath: source }, index) => ({ source, path: mountedAt(index) }));
}

/** Makes links in the agent's home to the files that `mountsOf` has mounted. */
export async function linkConfiguration(
  sandbox: Sandbox,
  { files }: Configuration,
  { home, signal }: { home: string; signal: AbortSignal },
): Promise<void> {
  const script =
    'while [ $# -gt 0 ]; do mkdir -p "$(dirname "$2")" && ln -sfn "$1" "$2" || exit 1; shift 2; done';
  const pairs = files.flatMap(({ path }: ConfigurationFile, index) => [mountedAt(index), `${home}/${path}`]);
  const { exitCode, output } = await sandbox.exec(["/bin/sh", "-c", script, "sh", ...pairs], { signal });
  if (exitCode !== 0)
    throw new BrigError(`the configuration cannot be linked into the home directory: ${output.trim()}`, {
      code: "workspace.invalid",
      hint: "use --config-dir copy",
    });
}

function mountedAt(index: number): string {
  return `${MOUNTED_PATH}/${index}`;
}

/**
 * Logs Codex in with the placeholders of a key or of tokens, which commands of the sandbox have in variables. Codex itself does not look
 * for the key of OpenAI in a variable. Each sandbox has other placeholders.
 */
export async function writeLogin(
  sandbox: Sandbox,
  inside: InsideLogin,
  { home, signal }: { home: string; signal: AbortSignal },
): Promise<void> {
  const names = inside.kind === "key" ? [inside.key] : [CHATGPT_TOKEN, CHATGPT_ACCOUNT];
  const script = names.map((name) => `printf '%s\\n' "$${name}"`).join("; ");
  const { stdout } = await sandbox.exec(["/bin/sh", "-c", script], { signal });
  const [first = "", second = ""] = stdout.split("\n");
  const target = `${home}/${inside.path}`;
  await sandbox.files.mkdir(target.slice(0, target.lastIndexOf("/")), { recursive: true, signal });
  const text =
    inside.kind === "key"
      ? JSON.stringify({ auth_mode: "apikey", OPENAI_API_KEY: first })
      : placeholderLogin({ accessToken: first, accountId: second }, inside.login.plan);
  await sandbox.files.write(target, text, { mode: 0o600, signal });
}
