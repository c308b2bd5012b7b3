import { resolve } from "node:path";
import type { Command } from "commander";
import { BrigError } from "../../errors.js";
import { neutraliseLine } from "../../lib/terminal/terminal.js";
import { connectEngine, loadsCode, requireImage } from "../../sandbox/index.js";
import type { CliContext } from "../context.js";
import type { SandboxFlags } from "../flags/sandbox-flags.js";
import { say } from "../render.js";
import { builtImage } from "./built-image.js";
import { type Devcontainer, readDevcontainer } from "./read-devcontainer.js";

/**
 * Does what the workspace's devcontainer.json says, as if it had been given as options. Options that were given take
 * precedence. Errors: `config.invalid`, `image.missing`, `image.build-failed`.
 */
export async function applyDevcontainer(command: Command, context: CliContext): Promise<void> {
  const flags = command.opts<SandboxFlags>();
  const { cwd, environment, stderr } = context;
  const workspace = resolve(cwd, flags.cd ?? ".");
  const { file, image, containerEnv, remoteEnv, setup, notes } = await readDevcontainer(workspace, {
    readable: flags.devcontainerEnv ?? [],
    variables: environment.variables,
  });
  const tell = async (note: string) =>
    await say(stderr, `brig: ${neutraliseLine(`devcontainer.json: ${note}`)}\n`);
  for (const note of notes) await tell(note);
  const name = image.kind === "name" ? image.name : await builtImage(image.build, context);
  const { env: ofImage } = await requireImage(await connectEngine({ env: environment }), name);
  const imageVariables = Object.fromEntries(ofImage.map(asPair));
  const env = { ...containerEnv, ...expanded(remoteEnv, { ...imageVariables, ...containerEnv }, file) };
  // The same goes for the variables of an image.
  for (const one of Object.keys(env).filter(loadsCode)) {
    await tell(`${one} is left out: programs run other code because of it; -e ${one}=VALUE sets it`);
    delete env[one];
  }
  command.setOptionValue("containerImage", name);
  command.setOptionValue("env", { ...env, ...flags.env });
  if (setup !== null) await applySetup(command, setup, tell);
}

function asPair(entry: string): [string, string] {
  const at = entry.indexOf("=");
  return at === -1 ? [entry, ""] : [entry.slice(0, at), entry.slice(at + 1)];
}

/** A variable that is null is none. Error: `config.invalid` for more than fits. */
function expanded(
  remoteEnv: Devcontainer["remoteEnv"],
  known: Readonly<Record<string, string>>,
  file: string,
): Record<string, string> {
  const found: Record<string, string> = {};
  for (const [name, value] of Object.entries(remoteEnv)) {
    if (value === null) continue;
    found[name] = value.replace(
      /\$\{containerEnv:(\w+)(?::([^}]*))?\}/g,
      (_, of: string, otherwise = "") => (Object.hasOwn(known, of) ? known[of] : undefined) ?? otherwise,
    );
    if (found[name].length > MAX_CHARS)
      throw new BrigError(`${file} gives ${name} a value of ${found[name].length} characters`, {
        code: "config.invalid",
        hint: `a variable may have ${MAX_CHARS}`,
      });
  }
  return found;
}

const MAX_CHARS = 128 * 1024;

async function applySetup(
  command: Command,
  setup: string,
  tell: (note: string) => Promise<void>,
): Promise<void> {
  const has = (name: string) => command.options.some((option) => option.attributeName() === name);
  // A session is set up as its configuration says, which this takes the place of.
  if (!has("setup") && !has("config"))
    return await tell("this command sets nothing up, so its commands do not run");
  if (command.opts<SandboxFlags>().setup === undefined) command.setOptionValue("setup", setup);
  else await tell("--setup takes the place of its commands");
}
