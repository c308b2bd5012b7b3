import { join } from "node:path";
import { BrigError } from "../../errors.js";

/** The place where an engine listens. `address` is the usual spelling, e.g. `unix:///var/run/docker.sock`. */
export type Endpoint =
  | { kind: "unix"; address: string; socketPath: string }
  | { kind: "tcp"; address: string; host: string; port: number; tls: TlsFiles | null }
  | SshEndpoint;

/** Null for what the configuration of ssh decides, and for the engine's usual socket. */
export interface SshEndpoint {
  kind: "ssh";
  address: string;
  host: string;
  user: string | null;
  port: number | null;
  socketPath: string | null;
}

interface TlsFiles {
  ca: Buffer;
  cert: Buffer;
  key: Buffer;
}

const plainPort = 2375;
const tlsPort = 2376;

export function unixEndpoint(socketPath: string): Endpoint {
  return { kind: "unix", address: `unix://${socketPath}`, socketPath };
}

/** Parses an address in the format of `DOCKER_HOST`. With `tlsDir`, TCP uses TLS with the files in it. */
export async function parseEndpoint(
  address: string,
  options: { tlsDir?: string | undefined } = {},
): Promise<Endpoint> {
  if (address.startsWith("unix://")) return parseUnix(address);
  if (address.startsWith("ssh://")) return parseSsh(address);
  return await parseTcp(address, options.tlsDir);
}

function parseUnix(address: string): Endpoint {
  const socketPath = address.slice("unix://".length);
  if (!socketPath.startsWith("/")) throw invalidAddress(address);
  return unixEndpoint(socketPath);
}

async function parseTcp(address: string, tlsDir: string | undefined): Promise<Endpoint> {
  const url = URL.canParse(address) ? new URL(address) : null;
  if (url === null || url.hostname === "" || !["tcp:", "http:", "https:"].includes(url.protocol)) {
    throw invalidAddress(address);
  }
  const usesTls = tlsDir !== undefined || url.protocol === "https:";
  return {
    kind: "tcp",
    address,
    host: url.hostname.replace(/^\[|\]$/g, ""),
    port: url.port === "" ? (usesTls ? tlsPort : plainPort) : Number(url.port),
    tls: usesTls ? await readTls(tlsDir, address) : null,
  };
}

async function readTls(dir: string | undefined, address: string): Promise<TlsFiles> {
  if (dir === undefined) {
    throw new BrigError(`no TLS certificates are configured for ${address}`, {
      code: "config.invalid",
      hint: "set DOCKER_TLS_VERIFY=1, and DOCKER_CERT_PATH to the folder with ca.pem, cert.pem and key.pem",
    });
  }
  try {
    const [ca, cert, key] = await Promise.all(
      // Loaded on demand, because it is slow, and most engines do not use TLS.
      ["ca.pem", "cert.pem", "key.pem"].map((name) =>
        process.getBuiltinModule("node:fs/promises").readFile(join(dir, name)),
      ),
    );
    return { ca, cert, key } as TlsFiles;
  } catch (cause) {
    throw new BrigError(`cannot read the TLS files of the container engine in ${dir}`, {
      code: "config.invalid",
      hint: "DOCKER_CERT_PATH must name a folder with ca.pem, cert.pem and key.pem",
      cause,
    });
  }
}

/** The parts go to a program and to a shell on the other machine, so they may only be what they say they are. */
function parseSsh(address: string): Endpoint {
  const [, user, name = "", port, path = ""] =
    /^ssh:\/\/(?:([\w.][\w.+@-]*)@)?(\w[\w.-]*|\[[0-9a-f:.]+(?:%\w+)?\])(?::(\d{1,5}))?(\/[\w./+-]*)?$/i.exec(
      address,
    ) ?? [];
  if (name === "" || Number(port ?? 22) > 65535)
    throw new BrigError(`${JSON.stringify(address)} is not a valid address of a container engine`, {
      code: "config.invalid",
      hint: "write ssh://user@host, ssh://host:port, or ssh://host/path/to/docker.sock; ssh takes no password in an address",
    });
  return {
    kind: "ssh",
    address,
    host: name.replace(/^\[|\]$/g, ""),
    user: user ?? null,
    port: port === undefined ? null : Number(port),
    socketPath: path === "" || path === "/" ? null : path,
  };
}

function invalidAddress(address: string): BrigError {
  return new BrigError(`${JSON.stringify(address)} is not a valid address of a container engine`, {
    code: "config.invalid",
    hint: "write unix:///path/to/docker.sock, tcp://host:2375 or ssh://user@host",
  });
}
