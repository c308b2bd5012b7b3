import { realpath } from "node:fs/promises";
import { basename, dirname, join, relative, resolve } from "node:path";
import { z } from "zod";
import { BrigError } from "../../errors.js";
import { readTextFile } from "../../lib/bounded-file.js";
import { parseJson } from "../../lib/json/parse-json.js";
import { withoutComments } from "../../lib/json/without-comments.js";
import { shellQuote } from "../../lib/shell-quote.js";
import { suggest } from "../../lib/suggest.js";
import type { ProjectBuild } from "../../sandbox/index.js";
import { isAtOrBelow } from "../../sandbox/index.js";

/** What a devcontainer.json says, as far as it changes nothing that a sandbox may do. */
export interface Devcontainer {
  /** Absolute. */
  file: string;
  image: { kind: "name"; name: string } | { kind: "build"; build: ProjectBuild };
  /** Variables of all commands; those of `remoteEnv` may still name variables of the image: `${containerEnv:PATH}`. */
  containerEnv: Readonly<Record<string, string>>;
  remoteEnv: Readonly<Record<string, string | null>>;
  /** A command of the shell; null for none. */
  setup: string | null;
  /** What the file asks for and does not get, in whole sentences. */
  notes: readonly string[];
}

interface ReadOptions {
  /** The names of the variables of this process that the file may read. */
  readable: readonly string[];
  variables: Readonly<Record<string, string | undefined>>;
}

const PLACES = [".devcontainer/devcontainer.json", ".devcontainer.json"];
const MAX_FILE_BYTES = 1024 * 1024;
const MAX_TEXT = 64 * 1024;

/**
 * Reads the file of a workspace, which anybody may have written: whatever would give the sandbox more than its policy does is
 * refused by its name. Error: `config.invalid`.
 */
export async function readDevcontainer(workspace: string, options: ReadOptions): Promise<Devcontainer> {
  const root = await realpath(workspace).catch(() => workspace);
  const { file, text } = await findFile(root);
  const refuse = (words: string, hint?: string) =>
    new BrigError(`${file} ${words}`, { code: "config.invalid", hint: hint ?? "change the file" });
  const given = parseJson(withoutComments(text.replace(/^\uFEFF/, "")));
  if (typeof given !== "object" || given === null || Array.isArray(given))
    throw refuse("is no JSON object, not even with comments");
  refuseRefused(given as Record<string, unknown>, refuse);
  const parsed = schema.safeParse(given);
  if (!parsed.success) throw refuse(`is not valid: ${z.prettifyError(parsed.error)}`);
  const variables = new Substitution({ root, ...options, refuse });
  const settings = variables.inAll(parsed.data);
  for (const mount of settings.mounts ?? []) requireOfWorkspace(mount, { root, refuse });
  return {
    file,
    image: await imageOf(settings, { root, file, refuse }),
    containerEnv: settings.containerEnv ?? {},
    remoteEnv: settings.remoteEnv ?? {},
    setup: setupOf(settings),
    notes: notesOf(settings, root),
  };
}

type Refuse = (words: string, hint?: string) => BrigError;

async function findFile(root: string): Promise<{ file: string; text: string }> {
  for (const place of PLACES) {
    const path = join(root, place);
    const real = await realpath(path).catch(() => null);
    if (real === null) continue;
    if (!isAtOrBelow(real, root))
      throw new BrigError(`${path} is a link to a file outside of the workspace`, {
        code: "config.invalid",
        hint: "replace it by the file itself",
      });
    const read = await readTextFile(real, MAX_FILE_BYTES);
    if (read.kind === "text") return { file: real, text: read.text };
    if (read.kind === "unreadable")
      throw new BrigError(`${path} ${read.reason}`, { code: "config.invalid", cause: read.cause });
  }
  throw new BrigError(`${root} has no ${PLACES.join(" and no ")}`, {
    code: "config.invalid",
    hint: "leave out --devcontainer, or name the workspace with -C; configurations in further folders are not looked for",
  });
}

const text = z.string().max(MAX_TEXT);
const command = z.union([text, z.array(text).max(1000)]);
const lifecycle = z.union([command, z.record(z.string(), command)]);
const environment = z.record(z.string().regex(/^[A-Za-z_]\w*$/), text);
const mountObject = z.strictObject({ type: text, source: text.optional(), target: text });

const schema = z.object({
  image: text.min(1).optional(),
  dockerFile: text.optional(),
  context: text.optional(),
  build: z
    .strictObject({
      dockerfile: text.optional(),
      context: text.optional(),
      args: environment.optional(),
      target: text.optional(),
      cacheFrom: z.union([text, z.array(text)]).optional(),
    })
    .optional(),
  containerEnv: environment.optional(),
  remoteEnv: z.record(z.string().regex(/^[A-Za-z_]\w*$/), text.nullable()).optional(),
  containerUser: text.optional(),
  remoteUser: text.optional(),
  workspaceFolder: text.optional(),
  mounts: z
    .array(z.union([text, mountObject]))
    .max(100)
    .optional(),
  onCreateCommand: lifecycle.optional(),
  updateContentCommand: lifecycle.optional(),
  postCreateCommand: lifecycle.optional(),
  postStartCommand: z.unknown().optional(),
  postAttachCommand: z.unknown().optional(),
});

type Settings = z.infer<typeof schema>;
type Lifecycle = z.infer<typeof lifecycle>;

/** What is refused unless it asks for nothing, and why. */
const REFUSED: Readonly<Record<string, string>> = {
  features:
    "features are scripts of others that an image is built with; install what you need in a Dockerfile",
  overrideFeatureInstallOrder: "features are not supported",
  dockerComposeFile: "Compose is not supported; name an image or a Dockerfile",
  service: "Compose is not supported",
  runServices: "Compose is not supported",
  runArgs: "options of the engine would change what the sandbox may do",
  privileged: "what a sandbox may do is said by its policy",
  capAdd: "capabilities are said by the policy",
  securityOpt: "seccomp and the like are said by the policy",
  workspaceMount: "the workspace is at its own path",
  initializeCommand: "it would run on this machine, outside of any sandbox",
  secrets: "secrets are given with --secret",
  appPort: "ports are published with --publish",
};

/** What changes nothing in a sandbox: it is for editors, or brig does it anyway. */
const OF_NO_EFFECT = new Set([
  ...["$schema", "name", "customizations", "settings", "extensions", "devPort", "forwardPorts"],
  ...["portsAttributes", "otherPortsAttributes", "shutdownAction", "overrideCommand", "userEnvProbe"],
  ...["waitFor", "hostRequirements", "init", "updateRemoteUserUID"],
]);

function refuseRefused(given: Record<string, unknown>, refuse: Refuse): void {
  for (const [name, value] of Object.entries(given)) {
    const why = Object.hasOwn(REFUSED, name) ? REFUSED[name] : undefined;
    if (why !== undefined) {
      if (!asksForNothing(value)) throw refuse(`has ${JSON.stringify(name)}, which brig refuses: ${why}`);
    } else if (!OF_NO_EFFECT.has(name) && !Object.hasOwn(schema.shape, name)) {
      const meant = suggest(name, [...Object.keys(schema.shape), ...Object.keys(REFUSED)]);
      throw refuse(
        `has ${JSON.stringify(name.slice(0, 100))}, which brig does not know`,
        meant === null ? undefined : `did you mean ${meant}?`,
      );
    }
  }
  const { build } = given;
  if (typeof build === "object" && build !== null && "options" in build && !asksForNothing(build.options))
    throw refuse(
      'has "build.options", which brig refuses: options of the builder would change what it may do',
    );
}

function asksForNothing(value: unknown): boolean {
  if (value === false || value === null) return true;
  return typeof value === "object" && Object.keys(value).length === 0;
}

interface Surroundings extends ReadOptions {
  root: string;
  refuse: Refuse;
}

/** Replaces `${…}`. Only variables of the host that the user has named are read: the file could send them anywhere. */
class Substitution {
  readonly #in: Surroundings;

  constructor(surroundings: Surroundings) {
    this.#in = surroundings;
  }

  inAll(settings: Settings): Settings {
    const { remoteEnv, ...others } = settings;
    return {
      ...(this.#replaced(others, false) as Settings),
      // Only here are the image's variables known by the time they are needed.
      ...(remoteEnv !== undefined && { remoteEnv: this.#replaced(remoteEnv, true) as typeof remoteEnv }),
    };
  }

  #replaced(value: unknown, keepsContainer: boolean): unknown {
    if (typeof value === "string")
      return value.replace(/\$\{([^}]*)\}/g, (whole, inside: string) =>
        keepsContainer && inside.startsWith("containerEnv:") ? whole : this.#valueOf(inside),
      );
    if (Array.isArray(value)) return value.map((one) => this.#replaced(one, keepsContainer));
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(
      Object.entries(value).map(([name, one]) => [name, this.#replaced(one, keepsContainer)]),
    );
  }

  #valueOf(inside: string): string {
    const { root, readable, variables, refuse } = this.#in;
    if (inside === "localWorkspaceFolder" || inside === "containerWorkspaceFolder") return root;
    if (inside === "localWorkspaceFolderBasename" || inside === "containerWorkspaceFolderBasename")
      return basename(root);
    const [, name, otherwise = ""] = /^(?:localEnv|env):(\w+)(?::(.*))?$/s.exec(inside) ?? [];
    if (name === undefined)
      throw refuse(
        `has the variable ${JSON.stringify(`\${${inside.slice(0, 100)}}`)}, which brig does not replace`,
      );
    if (readable.includes(name)) return variables[name] ?? otherwise;
    throw refuse(
      `wants to read ${name} of your environment`,
      `if it may, allow it: --devcontainer-env ${name}`,
    );
  }
}

/** A mount that the sandbox has anyway is fine. Any other could lead around what protects files, or out of the workspace. */
function requireOfWorkspace(
  mount: NonNullable<Settings["mounts"]>[number],
  { root, refuse }: { root: string; refuse: Refuse },
): void {
  const { type, source, target } = typeof mount === "string" ? fieldsOf(mount) : mount;
  const isThere =
    type === "bind" &&
    source !== undefined &&
    source === target &&
    isAtOrBelow(resolve("/", source), root) &&
    resolve("/", source) === source;
  if (isThere) return;
  const name = JSON.stringify(typeof mount === "string" ? mount.slice(0, 200) : `${source} at ${target}`);
  throw refuse(
    `has the mount ${name} in "mounts", which brig refuses: a sandbox has the workspace, at its own path, and no other directory`,
    "take it out; for another writable directory use --add-dir DIR",
  );
}

function fieldsOf(mount: string): {
  type: string | undefined;
  source: string | undefined;
  target: string | undefined;
} {
  const fields = new Map(
    mount.split(",").map((field) => {
      const at = field.indexOf("=");
      return at === -1 ? [field, ""] : [field.slice(0, at), field.slice(at + 1)];
    }),
  );
  return {
    type: fields.get("type"),
    source: fields.get("source") ?? fields.get("src"),
    target: fields.get("target") ?? fields.get("dst") ?? fields.get("destination"),
  };
}

async function imageOf(
  { image, build, dockerFile, context }: Settings,
  { root, file, refuse }: { root: string; file: string; refuse: Refuse },
): Promise<Devcontainer["image"]> {
  const dockerfile = build?.dockerfile ?? dockerFile;
  if (dockerfile === undefined) {
    if (image !== undefined) return { kind: "name", name: image };
    throw refuse('names neither an "image" nor a "build.dockerfile"');
  }
  if (image !== undefined) throw refuse('names both an "image" and a Dockerfile');
  const folder = dirname(file);
  const directory = await inside(resolve(folder, build?.context ?? context ?? "."), { root, refuse });
  const path = await inside(resolve(folder, dockerfile), { root, refuse });
  if (!isAtOrBelow(path, directory))
    throw refuse(
      `names the Dockerfile ${JSON.stringify(dockerfile)}, which is not in its build context`,
      'set "build.context" to a directory that has it, such as ".."',
    );
  const buildArgs = build?.args ?? {};
  const { target } = build ?? {};
  return {
    kind: "build",
    build: { context: directory, dockerfile: relative(directory, path), buildArgs, target },
  };
}

/** The real path: whatever is in a build context can be read by all that the build runs, which has a network. */
async function inside(path: string, { root, refuse }: { root: string; refuse: Refuse }): Promise<string> {
  const real = await realpath(path).catch(() => null);
  if (real === null) throw refuse(`names ${JSON.stringify(path)}, which does not exist`);
  if (isAtOrBelow(real, root)) return real;
  throw refuse(
    `names ${JSON.stringify(path)}, which is outside of the workspace`,
    "build with files of the workspace only",
  );
}

/** The commands for a new container, in the order in which editors run them. */
function setupOf(settings: Settings): string | null {
  const commands = [settings.onCreateCommand, settings.updateContentCommand, settings.postCreateCommand]
    .flatMap(commandsOf)
    .filter((one) => one.trim() !== "");
  if (commands.length === 0) return null;
  return commands.map((one) => `(\n${one}\n)`).join(" && ");
}

/** The commands of an object may run side by side; here they run one after the other. */
function commandsOf(given: Lifecycle | undefined): string[] {
  if (given === undefined) return [];
  if (typeof given === "string") return [given];
  if (Array.isArray(given)) return given.length === 0 ? [] : [shellQuote(given)];
  return Object.values(given).flatMap(commandsOf);
}

function notesOf(settings: Settings, root: string): string[] {
  const { workspaceFolder, remoteUser, containerUser, postStartCommand, postAttachCommand } = settings;
  const user = remoteUser ?? containerUser;
  return [
    ...(workspaceFolder === undefined || workspaceFolder === root
      ? []
      : [`the workspace is at ${root}, not at ${workspaceFolder}, and commands start in it`]),
    ...(user === undefined
      ? []
      : [`commands run with your user id, not as ${user}; --user UID:GID is for another`]),
    ...(postStartCommand === undefined ? [] : ["postStartCommand is not run"]),
    ...(postAttachCommand === undefined ? [] : ["postAttachCommand is not run"]),
  ];
}
