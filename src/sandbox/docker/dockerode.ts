import { BrigError } from "../../errors.js";
import type { Modem } from "./modem.js";

/**
 * What brig uses of a client of the `dockerode` package. It is described here, so that brig's types need no package of which a program
 * may have another version, or none.
 */
export interface DockerClient {
  readonly modem: { dial(request: never, callback: never): void };
}

/** The settings of dockerode's modem, which its types do not name. */
interface ModemSettings extends Pick<Modem, "dial"> {
  protocol?: string;
  host?: string;
  port?: number | string;
  username?: string;
  /** By default a function that looks for the socket. */
  socketPath?: string | (() => string | Promise<string>);
}

/** The modem of a program's own dockerode, with its addresses, certificates, agents and headers. Error: `usage.invalid`. */
export async function modemOf(docker: DockerClient): Promise<Modem> {
  const given = docker?.modem as unknown as Partial<ModemSettings> | undefined;
  if (typeof given?.dial !== "function")
    throw new BrigError("the option docker is not a client of dockerode", {
      code: "usage.invalid",
      hint: "pass a new Docker() of the package dockerode",
    });
  // brig names the API version itself, and has time limits of its own: a session that is idle for long is no failure.
  const own: ModemSettings = Object.create(given, {
    version: { value: undefined },
    timeout: { value: undefined },
  });
  return { address: await addressOf(own), dial: (request, callback) => own.dial(request, callback) };
}

/** In the format of `DOCKER_HOST`, so that what brig notes of an engine is the same whoever connects to it. */
async function addressOf({ protocol, host, port, username, socketPath }: ModemSettings): Promise<string> {
  if (!host) return `unix://${typeof socketPath === "function" ? await socketPath() : socketPath}`;
  const scheme = protocol === "ssh" ? "ssh" : "tcp";
  const name = host.replace(/^\w+:\/\//, "").replace(/\/.*$/, "");
  return `${scheme}://${username ? `${username}@` : ""}${name}${port ? `:${port}` : ""}`;
}
