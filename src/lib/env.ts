import { readlinkSync } from "node:fs";
import { userInfo } from "node:os";
import { isAbsolute, join, resolve } from "node:path";
import { BrigError } from "../errors.js";
import { currentDirectory } from "./current-directory.js";

/** Every environment variable that brig reads, under a name that says what it means. */
export interface Environment {
  /** All variables, since the `env_key` of a model provider may name any. Never passed to a sandbox. */
  readonly variables: Readonly<Record<string, string>>;
  readonly home: string;
  /** `BRIG_HOME`, default `~/.brig`: config, sessions, credentials. */
  readonly brigHome: string;
  /** `CODEX_HOME`, default `~/.codex`: its config.toml is read if $BRIG_HOME has none. */
  readonly codexHome: string;
  /** `DOCKER_HOST`, e.g. `unix:///run/user/1000/docker.sock`. */
  readonly dockerHost: string | undefined;
  /** `DOCKER_CERT_PATH` and `DOCKER_TLS_VERIFY`, for an engine behind TLS. */
  readonly dockerCertPath: string | undefined;
  readonly verifiesDockerTls: boolean;
  /** `XDG_RUNTIME_DIR`: rootless engines have their socket in it. */
  readonly runtimeDir: string | undefined;
  /** `NO_COLOR` (any non-empty value), `FORCE_COLOR=0` or `TERM=dumb`. */
  readonly forbidsColor: boolean;
  /** `FORCE_COLOR`, unless `NO_COLOR` is set, too. Never together with `forbidsColor`. */
  readonly forcesColor: boolean;
  /** `CI` is set to anything but the empty string, 0 or false. */
  readonly isContinuousIntegration: boolean;
  /** `BRIG_EGRESS_PROXY`: the proxy through which allow-lists reach the internet, or "environment". */
  readonly egressProxy: string | undefined;
  readonly openaiApiKey: string | undefined;
  readonly openaiBaseUrl: string | undefined;
  /** The user's shell, `SHELL`; for messages only. */
  readonly shell: string | undefined;
  /** `TZ`, or the machine's time zone, e.g. `Europe/Berlin`. */
  readonly timezone: string;
}

type Variables = Readonly<Record<string, string | undefined>>;

/**
 * Returns a frozen object. An empty variable counts as unset, and so does a relative path in a variable of XDG, as its
 * specification demands. Nothing else in brig reads `process.env`. Error: `config.invalid` for a home that is a relative path: brig
 * would obey the settings of whatever directory it is started in.
 */
export function readEnvironment(
  source: Variables = process.env,
  { cwd = () => currentDirectory(process) }: { cwd?: () => string } = {},
): Environment {
  const variables = Object.freeze(Object.fromEntries(setVariables(source)));
  const homeIn = (name: string, otherwise: () => string) => {
    const path = variables[name];
    if (path === undefined) return otherwise();
    if (isAbsolute(path)) return resolve(path);
    throw new BrigError(`${name} is ${JSON.stringify(path)}, and brig needs an absolute path there`, {
      code: "config.invalid",
      hint: `unset ${name}, or set it to a path such as ${resolve(cwd(), path)}`,
    });
  };
  const home = homeIn("HOME", homeOfUser);
  return Object.freeze({
    variables,
    home,
    brigHome: homeIn("BRIG_HOME", () => join(home, ".brig")),
    codexHome: homeIn("CODEX_HOME", () => join(home, ".codex")),
    dockerHost: variables.DOCKER_HOST,
    dockerCertPath: variables.DOCKER_CERT_PATH,
    verifiesDockerTls: isOn(variables.DOCKER_TLS_VERIFY),
    runtimeDir: variables.XDG_RUNTIME_DIR,
    ...colours(variables),
    isContinuousIntegration: isOn(variables.CI),
    egressProxy: variables.BRIG_EGRESS_PROXY,
    openaiApiKey: variables.OPENAI_API_KEY,
    openaiBaseUrl: variables.OPENAI_BASE_URL,
    shell: variables.SHELL,
    get timezone() {
      return variables.TZ ?? zoneOfMachine() ?? Intl.DateTimeFormat().resolvedOptions().timeZone;
    },
  });
}

/** The same environment, in which colours are used always or never. */
export function withColours(environment: Environment, when: "always" | "never"): Environment {
  const forces = when === "always";
  // Not spread: reading the time zone may take long.
  return Object.freeze(
    Object.create(null, {
      ...Object.getOwnPropertyDescriptors(environment),
      forbidsColor: { value: !forces, enumerable: true },
      forcesColor: { value: forces, enumerable: true },
    }),
  );
}

function colours({
  NO_COLOR,
  FORCE_COLOR,
  TERM,
}: Environment["variables"]): Pick<Environment, "forbidsColor" | "forcesColor"> {
  const forcesColor = NO_COLOR === undefined && isOn(FORCE_COLOR);
  const isOff = NO_COLOR !== undefined || FORCE_COLOR !== undefined || TERM === "dumb";
  return { forbidsColor: !forcesColor && isOff, forcesColor };
}

/** `/` for a user id that the machine does not know, such as an arbitrary one in a container. */
function homeOfUser(): string {
  try {
    // This does not use homedir(), which returns an empty HOME as it is.
    return resolve("/", userInfo().homedir);
  } catch {
    return "/";
  }
}

/** Asking Intl takes ten milliseconds. If /etc/localtime is a link, its target names the zone. */
function zoneOfMachine(): string | undefined {
  try {
    return /\/zoneinfo\/(?:posix\/|right\/)?([\w+/-]+)$/.exec(readlinkSync("/etc/localtime"))?.[1];
  } catch {
    return undefined;
  }
}

function* setVariables(source: Variables): Iterable<[string, string]> {
  for (const [name, value = ""] of Object.entries(source)) {
    const used = withoutRelative(name, value);
    if (used !== "") yield [name, used];
  }
}

function withoutRelative(name: string, value: string): string {
  const [, kind] = /^XDG_\w+_(HOME|DIRS?)$/.exec(name) ?? [];
  if (kind === undefined) return value;
  const paths = kind === "DIRS" ? value.split(":") : [value];
  return paths.filter((path) => isAbsolute(path)).join(":");
}

function isOn(value: string | undefined): boolean {
  return value !== undefined && value !== "0" && value.toLowerCase() !== "false";
}
