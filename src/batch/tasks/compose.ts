import { posix } from "node:path";
import { z } from "zod";
import type { TaskTree } from "./files.js";
import { shown, type TaskNotes } from "./notes.js";
import { parseYaml } from "./parse-text.js";
import type { TaskCopy, TaskNetwork } from "./task.js";
import { checkedTable, isTable, sizeInMb, type Table, type Variables } from "./values.js";

export interface ComposeOptions extends CopyOptions {
  /** The only service that the file may have. */
  service: string;
  /** Variables that the format's own runner sets, and those that tasks may ask for. */
  variables: Variables;
}

export interface ComposeService {
  /** The name of an image; null if the file gives none. */
  image: string | null;
  build: ComposeBuild | null;
  env: Readonly<Record<string, string>>;
  workdir: string | null;
  user: string | null;
  network: TaskNetwork | null;
  limits: { cpus: number | null; memoryMb: number | null };
  copies: readonly TaskCopy[];
}

/** `context` is relative to the task's directory, `dockerfile` to the context. */
interface ComposeBuild {
  context: string;
  dockerfile: string;
  buildArgs: Readonly<Record<string, string>>;
}

/** Null, with faults in the notes, if brig cannot do what the file asks for. */
export function readComposeService(file: string, options: ComposeOptions): ComposeService | null {
  const { tree, notes, variables } = options;
  const before = notes.faults.length;
  const text = tree.text(file, notes);
  const parsed = text === null ? undefined : parseYaml(text, { notes, file });
  if (parsed === undefined) return null;
  const service = onlyService(interpolatedValue(parsed, variables, { notes, file }), file, options);
  if (service === null) return null;
  refuseUnsupported(service, file, notes);
  const settings = checkedTable(serviceSchema, supported(service), { notes, place: { file } });
  const read = settings === null ? null : serviceOf(settings, file, options);
  return notes.faults.length === before ? read : null;
}

function onlyService(value: unknown, file: string, { service, notes }: ComposeOptions): Table | null {
  const services = isTable(value) && isTable(value.services) ? value.services : {};
  const others = Object.keys(services).filter((name) => name !== service);
  if (others.length > 0)
    notes.refuse(`has the services ${others.map(shown).join(", ")}, and brig runs only ${shown(service)}`, {
      file,
    });
  if (isTable(value))
    for (const key of ["networks", "secrets", "configs", "include"].filter((one) => isFilled(value[one])))
      notes.refuse("is not supported", { file, field: key });
  const one = services[service];
  if (isTable(one)) return one;
  if (others.length === 0) notes.refuse(`has no service ${shown(service)}`, { file });
  return null;
}

function isFilled(value: unknown): boolean {
  return value !== undefined && value !== null && !(isTable(value) && Object.keys(value).length === 0);
}

function refuseUnsupported(service: Table, file: string, notes: TaskNotes): void {
  for (const [key, value] of Object.entries(service)) {
    if (Object.hasOwn(serviceSchema.shape, key) || harmlessKeys.includes(key) || key.startsWith("x-"))
      continue;
    const isOff = value === false || value === null || (Array.isArray(value) && value.length === 0);
    if (!isOff) notes.refuse("is not supported: what it asks for would be missing", { file, field: key });
  }
}

function supported(service: Table): Table {
  return Object.fromEntries(
    Object.entries(service).filter(
      ([key, value]) => Object.hasOwn(serviceSchema.shape, key) && value !== null,
    ),
  );
}

function serviceOf(settings: ServiceSettings, file: string, options: ComposeOptions): ComposeService {
  const { notes } = options;
  refuseCommand(settings, file, notes);
  const resources = settings.deploy?.resources.limits;
  return {
    image: settings.image === undefined || settings.image === "" ? null : settings.image,
    build: settings.build === undefined ? null : buildOf(settings.build, file, options),
    env: filledVariables(settings.environment ?? {}, { options, file, field: "environment" }),
    workdir: settings.working_dir ?? null,
    user: settings.user === undefined ? null : String(settings.user),
    network: networkOf(settings, file, notes),
    copies: copiesOf(settings, file, options),
    limits: {
      cpus: cpusOf(settings.cpus ?? resources?.cpus, { file, notes }),
      memoryMb: memoryOf(settings.mem_limit ?? resources?.memory, { file, notes }),
    },
  };
}

/** The runner keeps the container up by itself. Any other program would be missing. */
function refuseCommand({ command, entrypoint }: ServiceSettings, file: string, notes: TaskNotes): void {
  const programs = { command, entrypoint };
  for (const [field, program] of Object.entries(programs)) {
    const text = [program ?? []].flat().join(" ").trim();
    if (
      text !== "" &&
      !/^(?:(?:\/(?:usr\/)?bin\/)?(?:ba|da)?sh -l?c )?["']?(?:exec )?(?:sleep infinity|sleep \d+[smhd]?|tail -f \/dev\/null)["']?$/.test(
        text,
      )
    )
      notes.refuse(`is ${shown(text)}: brig starts no program of its own in a task's container`, {
        file,
        field,
      });
  }
}

function buildOf(build: BuildSettings, file: string, options: ComposeOptions): ComposeBuild | null {
  const {
    context = ".",
    dockerfile = "Dockerfile",
    args = {},
  } = typeof build === "string" ? { context: build } : build;
  const { notes, tree } = options;
  const folder = posix.dirname(file);
  const path = posix.join(folder, context).replace(/\/$/, "");
  const field = "build";
  if (posix.isAbsolute(context) || /^\w+:\/\/|^git@/.test(context) || !isWithin(path, folder))
    notes.refuse(
      `has the context ${shown(context)}, which is outside of ${folder === "." ? "the task" : folder}`,
      { file, field },
    );
  else if (!isWithin(posix.join(path, dockerfile), path) || !tree.hasFile(posix.join(path, dockerfile)))
    notes.refuse(`names the Dockerfile ${shown(dockerfile)}, which the context does not have`, {
      file,
      field,
    });
  else
    return {
      context: path,
      dockerfile: posix.normalize(dockerfile),
      buildArgs: filledVariables(args, { options, file, field }),
    };
  return null;
}

function isWithin(path: string, folder: string): boolean {
  const way = posix.relative(folder, path);
  return way !== ".." && !way.startsWith("../") && !posix.isAbsolute(path);
}

function networkOf(
  { network_mode: mode }: ServiceSettings,
  file: string,
  notes: TaskNotes,
): TaskNetwork | null {
  if (mode === "none") return { mode: "no-network", allowedHosts: [] };
  if (mode !== undefined && mode !== "bridge" && mode !== "default" && mode !== "")
    notes.refuse(`is ${shown(mode)}, and may only be none or bridge`, { file, field: "network_mode" });
  return null;
}

interface LimitPlace {
  file: string;
  notes: TaskNotes;
}

function cpusOf(value: string | number | undefined, { file, notes }: LimitPlace): number | null {
  if (value === undefined || value === "") return null;
  const cpus = Number(value);
  if (Number.isFinite(cpus) && cpus > 0) return cpus;
  notes.refuse(`is ${shown(value)} and must be a number of processors`, { file, field: "cpus" });
  return null;
}

function memoryOf(value: string | number | undefined, { file, notes }: LimitPlace): number | null {
  if (value === undefined || value === "") return null;
  const megabytes = sizeInMb(String(value));
  if (megabytes !== null && megabytes > 0) return megabytes;
  notes.refuse(`is ${shown(value)} and must be a size such as 2g`, { file, field: "mem_limit" });
  return null;
}

const scalar = z.union([z.string(), z.number(), z.boolean(), z.null()]);
const command = z.union([z.string(), z.array(z.string()), z.null()]);

/** `KEY=value` lines, or a table. A key without a value takes it from outside. */
const variables = z.union([z.array(z.string()), z.record(z.string(), scalar)]);

const buildSchema = z.union([
  z.string(),
  z.strictObject({
    context: z.string().optional(),
    dockerfile: z.string().optional(),
    args: variables.optional(),
    tags: z.unknown().optional(),
    labels: z.unknown().optional(),
  }),
]);

const volumeSchema = z.union([
  z.string(),
  z.looseObject({
    type: z.string(),
    source: z.string().optional(),
    target: z.string(),
    read_only: z.boolean().optional(),
  }),
]);

const size = z.union([z.string(), z.number()]);

/** The keys that brig honours. Any other key of a service is refused, but for those that change nothing for a task. */
const serviceSchema = z.object({
  image: z.string().optional(),
  build: buildSchema.optional(),
  command: command.optional(),
  entrypoint: command.optional(),
  environment: variables.optional(),
  working_dir: z.string().startsWith("/", "it must be an absolute path").optional(),
  user: z.union([z.string().min(1), z.number().int().min(0)]).optional(),
  network_mode: z.string().optional(),
  volumes: z.array(volumeSchema).optional(),
  cpus: size.optional(),
  mem_limit: size.optional(),
  deploy: z
    .strictObject({
      resources: z.strictObject({
        limits: z.strictObject({ cpus: size.optional(), memory: size.optional() }).optional(),
        reservations: z.strictObject({ cpus: size.optional(), memory: size.optional() }).optional(),
      }),
    })
    .optional(),
});

type ServiceSettings = z.output<typeof serviceSchema>;
type BuildSettings = z.output<typeof buildSchema>;
type VariableSettings = z.output<typeof variables>;

/** Keys of a service that make no difference for one container that brig starts and ends itself. */
const harmlessKeys = [
  "annotations",
  "attach",
  "container_name",
  "expose",
  "hostname",
  "init",
  "labels",
  "logging",
  "mem_reservation",
  "platform",
  "profiles",
  "pull_policy",
  "restart",
  "stdin_open",
  "stop_grace_period",
  "stop_signal",
  "tty",
];

/** The value with all variables in its texts filled in. Keys are left as they are. */
function interpolatedValue(
  value: unknown,
  variables: Variables,
  place: { notes: TaskNotes; file: string },
): unknown {
  if (typeof value === "string") {
    const result = interpolated(value, variables);
    if (result.kind === "text") return result.text;
    const { reason, missingVariable } = result;
    place.notes.refuse(reason, {
      file: place.file,
      ...(missingVariable === undefined ? {} : { missingVariable }),
    });
    return "";
  }
  if (Array.isArray(value)) return value.map((one) => interpolatedValue(one, variables, place));
  if (!isTable(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, one]) => [key, interpolatedValue(one, variables, place)]),
  );
}

/** A variable that is named without a value is taken from outside, and left out if it is not set there. */
function filledVariables(
  settings: VariableSettings,
  {
    options,
    file,
    field,
  }: { options: { variables: Variables; notes: TaskNotes }; file: string; field: string },
): Record<string, string> {
  const filled: Record<string, string> = {};
  for (const [name, value] of pairsOf(settings)) {
    const given = value ?? (Object.hasOwn(options.variables, name) ? options.variables[name] : undefined);
    if (given !== undefined) filled[name] = given;
    else options.notes.warn(`${file}: ${field}: the variable ${name} is not set and left out`);
  }
  return filled;
}

function pairsOf(settings: VariableSettings): [string, string | null][] {
  if (!Array.isArray(settings))
    return Object.entries(settings).map(([name, value]) => [name, value === null ? null : String(value)]);
  return settings.map((line) => {
    const at = line.indexOf("=");
    return at === -1 ? [line, null] : [line.slice(0, at), line.slice(at + 1)];
  });
}

const reference =
  /\$(?:(?<escaped>\$)|(?<bare>[A-Za-z_][A-Za-z0-9_]*)|\{(?<name>[A-Za-z_][A-Za-z0-9_]*)(?:(?<operator>:?[-?+])(?<word>[^{}]*))?\}|(?<invalid>))/g;

export type Interpolated =
  | { kind: "text"; text: string }
  | { kind: "refused"; reason: string; missingVariable?: string | undefined };

/** Fills in `$NAME`, `${NAME}`, `${NAME:-default}` and the like as Compose does. A missing variable is refused. */
export function interpolated(
  text: string,
  variables: Readonly<Record<string, string | undefined>>,
): Interpolated {
  let reason: string | null = null;
  let missingVariable: string | undefined;
  const filled = text.replace(reference, (...match) => {
    const groups = match.at(-1) as Record<string, string | undefined>;
    if (groups.escaped !== undefined) return "$";
    const name = groups.bare ?? groups.name;
    if (name === undefined) reason ??= "has a $ that is no variable; write $$ for the character";
    const value = name !== undefined && Object.hasOwn(variables, name) ? variables[name] : undefined;
    const chosen = choice(value, groups.operator ?? "", groups.word ?? "");
    if (chosen === null) {
      reason ??= `asks for the variable ${name}, which is not set`;
      missingVariable ??= name;
    }
    return chosen ?? "";
  });
  return reason === null ? { kind: "text", text: filled } : { kind: "refused", reason, missingVariable };
}

function choice(value: string | undefined, operator: string, word: string): string | null {
  const isSet = value !== undefined && !(operator.startsWith(":") && value === "");
  if (operator.endsWith("+")) return isSet ? word : "";
  if (isSet) return value;
  return operator.endsWith("-") ? word : null;
}

interface CopyOptions {
  tree: TaskTree;
  notes: TaskNotes;
  /** Directories that the format's own runner mounts, and brig provides in its own way. */
  providedDirectories: readonly string[];
  /** Whether a file of the task belongs to its tests or its solution. */
  isOfGrader(path: string): boolean;
}

interface Volume {
  /** Empty for a directory of the container. */
  source: string;
  target: string;
  isReadOnly: boolean;
}

/**
 * The task's own files that a service mounts. Its container gets copies of them, so that programs in it cannot change
 * the task. Tests and solution are left out. Any other directory of the host is a fault.
 */
function copiesOf({ volumes = [] }: ServiceSettings, file: string, options: CopyOptions): TaskCopy[] {
  return volumes.map(volumeOf).flatMap((volume) => {
    const target = posix.normalize(volume.target).replace(/(.)\/$/, "$1");
    if (options.providedDirectories.includes(target)) return [];
    return copyOf({ ...volume, target }, file, options) ?? [];
  });
}

function volumeOf(volume: NonNullable<ServiceSettings["volumes"]>[number]): Volume {
  if (typeof volume === "string") {
    const [first = "", second, modes = ""] = volume.split(":");
    if (second === undefined) return { source: "", target: first, isReadOnly: false };
    const source = /^[./~]/.test(first) ? first : "";
    return { source, target: second, isReadOnly: modes.split(",").includes("ro") };
  }
  const { type, source = "", target, read_only: isReadOnly = false } = volume;
  return { source: type === "volume" ? "" : source || type, target, isReadOnly };
}

function copyOf({ source, target, isReadOnly }: Volume, file: string, options: CopyOptions): TaskCopy | null {
  const { tree, notes, isOfGrader } = options;
  const place = { file, field: "volumes" };
  const refuse = (problem: string) => {
    notes.refuse(problem, place);
    return null;
  };
  if (!posix.isAbsolute(target) || target === "/")
    return refuse(`mounts something at ${shown(target)}, where nothing can be mounted`);
  if (source === "") {
    notes.warn(`${file}: the volume at ${shown(target)} is a directory of the container itself`);
    return null;
  }
  const path = posix.join(posix.dirname(file), source).replace(/(.)\/$/, "$1");
  if (!source.startsWith(".") || path === ".." || path.startsWith("../"))
    return refuse(`mounts ${shown(source)} of the host, which no task may`);
  const isRoot = path === ".";
  if (!isRoot && isOfGrader(path)) return refuse(`mounts ${shown(source)}, which the agent must not see`);
  if (!isRoot && !tree.hasFile(path) && !tree.hasDirectory(path))
    return refuse(`mounts ${shown(source)} of the host, which no task may`);
  const below = isRoot ? [...tree.entries()] : tree.below(path);
  const hidden = below
    .filter((entry) => isOfGrader(entry.path))
    .map((entry) => posix.relative(path, entry.path));
  if (hidden.length > 0)
    notes.warn(
      `${file}: tests and solution are left out of the copy of ${shown(source)} at ${shown(target)}`,
    );
  return { source: tree.absolute(path), target, exclude: hidden, isReadOnly };
}
