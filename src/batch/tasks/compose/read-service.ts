import { posix } from "node:path";
import { shown } from "../notes/fault-text.js";
import type { TaskNotes } from "../notes/task-notes.js";
import type { TaskCopy, TaskNetwork } from "../task.js";
import { checkedTable, isTable, type Table } from "../values/checked-table.js";
import { parseYaml } from "../values/parse-text.js";
import { sizeInMb } from "../values/sizes.js";
import type { Variables } from "../values/variables.js";
import { type CopyOptions, copiesOf } from "./copies.js";
import { filledVariables, interpolatedValue } from "./fill-variables.js";
import { type BuildSettings, harmlessKeys, type ServiceSettings, serviceSchema } from "./schema.js";

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
