import { X509Certificate } from "node:crypto";
import { posix } from "node:path";
import { rootCertificates } from "node:tls";
import { isBrigError } from "../../../errors.js";
import type { RunnerLink } from "../../channel/runner-link.js";
import { readFile } from "../../files/file-reads.js";
import { sandboxFiles, statFile, writeEach, writeFile } from "../../files/files.js";
import { isAtOrBelow } from "../../plan/paths.js";
import type { SandboxPlan } from "../../plan/plan.js";
import type { CommandContext } from "../../process/command.js";
import { exec } from "../../process/run-to-end.js";
import type { FileWrite } from "../../sandbox-types.js";
import { readKeyStore, writeKeyStore } from "./trust-key-store.js";

/** The files in which distributions keep the certificates of all authorities that they trust. */
const SYSTEM_BUNDLES = [
  "/etc/ssl/certs/ca-certificates.crt",
  "/etc/pki/tls/certs/ca-bundle.crt",
  "/etc/ssl/ca-bundle.pem",
  "/etc/ssl/cert.pem",
];
const BUNDLE_MAX_BYTES = 8 * 1024 * 1024;
const CERTIFICATE = /-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----/g;

interface TrustOptions {
  plan: Pick<SandboxPlan, "imageEnvironment" | "home" | "mounts" | "volumes">;
  signal?: AbortSignal | undefined;
}

/**
 * Makes programs in a sandbox trust one more authority, in PEM: writes the authorities that the image trusts and this one to
 * files, in the forms that programs read. Returns the variables that lead programs to them.
 */
export async function trustInside(
  link: RunnerLink,
  certificate: string,
  { plan, signal }: TrustOptions,
): Promise<Record<string, string>> {
  const context: CommandContext = { link, cwd: "/", env: {}, onStuck: () => undefined };
  const { imageEnvironment: variables } = plan;
  const [java, certificates] = await Promise.all([
    findJava(context, variables),
    imageCertificates(context, variables),
  ]);
  const bundle = [...certificates, certificate.trim(), ""].join("\n");
  await writeFile(context, { path: BUNDLE, data: bundle, mode: 0o444 });
  const files = [{ path: AUTHORITY, data: certificate }, ...settingsFiles].map((file) => ({
    ...file,
    mode: 0o444,
  }));
  await Promise.all([
    writeAll(context, files),
    java !== null && writeJavaStore(context, java, { certificate, certificates }),
  ]);
  await trustInNss(context, { ...plan, signal });
  return {
    ...bundleVariables(variables),
    ...(java !== null && { JAVA_TOOL_OPTIONS: `-Djavax.net.ssl.trustStore=${JAVA_STORE}` }),
  };
}

async function writeAll(context: CommandContext, files: readonly FileWrite[]): Promise<void> {
  await sandboxFiles(context).mkdir(PHP_DIRECTORY, { recursive: true, mode: 0o755 });
  const { failure } = await writeEach(context, files, {});
  if (failure !== null) throw failure;
}

/** Certificates of the image. Its files at these paths may contain anything. An image without certificates gets those of Node. */
async function imageCertificates(
  context: CommandContext,
  { SSL_CERT_FILE: own }: Readonly<Record<string, string>>,
): Promise<readonly string[]> {
  const paths = own?.startsWith("/") ? [own, ...SYSTEM_BUNDLES] : SYSTEM_BUNDLES;
  for (const path of paths) {
    const file = await readIfThere(context, path, { maxBytes: BUNDLE_MAX_BYTES });
    const found = file?.toString("latin1").match(CERTIFICATE);
    if (found) return found;
  }
  return rootCertificates;
}

async function writeJavaStore(
  context: CommandContext,
  java: string,
  { certificate, certificates }: { certificate: string; certificates: readonly string[] },
): Promise<void> {
  const trusted = (await authoritiesOfJava(context, java)) ?? certificates.flatMap(readable);
  const data = writeKeyStore([...trusted, ...readable(certificate)]);
  await writeFile(context, { path: JAVA_STORE, data, mode: 0o444 });
}

/** The certificate in DER; empty if it cannot be read, which would keep a JVM from reading the whole store. */
function readable(pem: string): Buffer[] {
  try {
    return [new X509Certificate(pem).raw];
  } catch {
    return [];
  }
}

/** A directory that every container has, and that is never a part of the image or of the workspace. */
const DIRECTORY = "/dev/shm";
/** The certificates that the image trusts, and that of the sandbox's authority. */
const BUNDLE = `${DIRECTORY}/brig-certificates.pem`;
const AUTHORITY = `${DIRECTORY}/brig-authority.pem`;
/** The same certificates as in `BUNDLE`, for JVMs. */
const JAVA_STORE = `${DIRECTORY}/brig-certificates.jks`;
const WGETRC = `${DIRECTORY}/brig-wgetrc`;
const APT_CONFIG = `${DIRECTORY}/brig-apt.conf`;
/** PHP reads every file that ends with .ini in a directory. */
const PHP_DIRECTORY = `${DIRECTORY}/brig-php`;

/** Each replaces the list of authorities of some programs. */
const BUNDLE_VARIABLES = [
  ...["SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "PIP_CERT", "GIT_SSL_CAINFO", "AWS_CA_BUNDLE"],
  ...["CARGO_HTTP_CAINFO", "NIX_SSL_CERT_FILE", "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", "HEX_CACERTS_PATH"],
  ...["CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE", "BUNDLE_SSL_CA_CERT", "PERL_LWP_SSL_CA_FILE"],
];
/** Each adds to the authorities that the program trusts already. */
const ADDED_VARIABLES = ["NODE_EXTRA_CA_CERTS", "DENO_CERT"];

/** Files for programs that take the path of the certificates only from a file of settings. */
const settingsFiles: readonly FileWrite[] = [
  { path: WGETRC, data: `ca_certificate = ${BUNDLE}\n` },
  { path: APT_CONFIG, data: `Acquire::https::CaInfo "${BUNDLE}";\n` },
  { path: `${PHP_DIRECTORY}/brig.ini`, data: `curl.cainfo = "${BUNDLE}"\n` },
];

/** An image's own file of settings is left to the program, since it cannot name another one. */
function bundleVariables(image: Readonly<Record<string, string>>): Record<string, string> {
  const { WGETRC: wgetrc = WGETRC, APT_CONFIG: aptConfig = APT_CONFIG, PHP_INI_SCAN_DIR: php = "" } = image;
  return {
    ...Object.fromEntries(BUNDLE_VARIABLES.map((name) => [name, BUNDLE])),
    ...Object.fromEntries(ADDED_VARIABLES.map((name) => [name, AUTHORITY])),
    WGETRC: wgetrc,
    APT_CONFIG: aptConfig,
    // PHP's own directories come before the colon. An empty name stands for them.
    PHP_INI_SCAN_DIR: `${php}:${PHP_DIRECTORY}`,
  };
}

/** An image may name any number of directories. */
const MAX_DIRECTORIES = 32;

/** Null for a file that is not there, or cannot be read, or is too large. The image's file may have any content. */
export async function readIfThere(
  context: CommandContext,
  path: string,
  { maxBytes }: { maxBytes: number },
): Promise<Buffer | null> {
  return await unlessFailed(readFile(context, path, { maxBytes }));
}

/** The path of the first program of this name, links not followed; null if the image has none. */
export async function findProgram(
  context: CommandContext,
  name: string,
  directories: readonly string[],
): Promise<string | null> {
  const paths = directories.slice(0, MAX_DIRECTORIES).map((directory) => posix.join(directory, name));
  // All at once, so that looking takes one round trip.
  const found = await Promise.all(paths.map(async (path) => await unlessFailed(statFile(context, path, {}))));
  return paths.find((_, at) => found[at]?.type === "file") ?? null;
}

export function searchPath({ PATH = "" }: Readonly<Record<string, string>>): string[] {
  return PATH.split(":").filter((directory) => directory.startsWith("/"));
}

export async function unlessFailed<Result>(operation: Promise<Result>): Promise<Result | null> {
  try {
    return await operation;
  } catch (error) {
    if (!isBrigError(error) || error.code === "sandbox.gone") throw error;
    return null;
  }
}

/** The files in which a JVM keeps the authorities that it trusts, from the directory of its `java`; Java 8 has them in `jre`. */
const STORES = ["../lib/security/jssecacerts", "../lib/security/cacerts", "../jre/lib/security/cacerts"];
const STORE_MAX_BYTES = 8 * 1024 * 1024;
/** The most links that the kernel follows. */
const MAX_LINKS = 40;

/** The path of the image's `java`, links not followed; null for an image without a JVM. */
export async function findJava(
  context: CommandContext,
  variables: Readonly<Record<string, string>>,
): Promise<string | null> {
  const { JAVA_HOME: home = "" } = variables;
  const own = home.startsWith("/") ? [posix.join(home, "bin")] : [];
  return await findProgram(context, "java", [...own, ...searchPath(variables)]);
}

/** The authorities, in DER, that the JVM trusts. Null if they are kept in another form, or not where JVMs have them. */
export async function authoritiesOfJava(context: CommandContext, java: string): Promise<Buffer[] | null> {
  const directory = posix.dirname(await followed(context, java));
  for (const store of STORES) {
    // Not simplified: what is before `..` may be a link.
    const path = `${directory}/${store}`;
    const file = await readIfThere(context, path, { maxBytes: STORE_MAX_BYTES });
    const certificates = file && readKeyStore(file);
    if (certificates?.length) return certificates;
  }
  return null;
}

async function followed(context: CommandContext, path: string): Promise<string> {
  let at = path;
  for (let links = 0; links < MAX_LINKS; links++) {
    const target = (await unlessFailed(statFile(context, at, { followSymlinks: false })))?.linkTarget;
    if (!target) return at;
    at = target.startsWith("/") ? target : `${posix.dirname(at)}/${target}`;
  }
  return path;
}

/** The directory in the user's HOME where Chromium and other programs with NSS keep what the user trusts. */
const DATABASE = ".pki/nssdb";
const NICKNAME = "brig";
const TIMEOUT_MS = 10_000;

/**
 * Adds the authority to the user's database of NSS, if the image has NSS's own tool for it: nothing else writes such a database.
 * A home that is a directory of the host is left alone. Where this fails, programs refuse the proxy's certificate, which is said.
 */
export async function trustInNss(
  context: CommandContext,
  {
    imageEnvironment,
    home,
    mounts,
    volumes,
    signal,
  }: Pick<SandboxPlan, "imageEnvironment" | "home" | "mounts" | "volumes"> & {
    signal?: AbortSignal | undefined;
  },
): Promise<void> {
  const directory = `${home}/${DATABASE}`;
  if ([...mounts, ...volumes].some(({ path }) => isAtOrBelow(directory, path))) return;
  const certutil = await findProgram(context, "certutil", searchPath(imageEnvironment));
  if (certutil === null) return;
  const files = sandboxFiles(context);
  const { PATH = "" } = imageEnvironment;
  const run = async (...argv: string[]) =>
    await exec(context, argv, {
      env: { PATH, HOME: home },
      timeoutMs: TIMEOUT_MS,
      signal,
      maxOutputBytes: 4096,
      endsTree: true,
    });
  const database = ["-d", `sql:${directory}`];
  if (
    (await unlessFailed(files.mkdir(directory, { recursive: true, mode: 0o700 }).then(() => true))) === null
  )
    return;
  const isThere = (await unlessFailed(files.stat(`${directory}/cert9.db`))) !== null;
  // After a restart there may be a certificate of the same name from before.
  if (isThere) await run(certutil, "-D", "-n", NICKNAME, ...database);
  else await run(certutil, "-N", "--empty-password", ...database);
  await run(certutil, "-A", "-n", NICKNAME, "-t", "C,,", "-i", AUTHORITY, ...database);
}
