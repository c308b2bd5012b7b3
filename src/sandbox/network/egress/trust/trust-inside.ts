import { X509Certificate } from "node:crypto";
import { rootCertificates } from "node:tls";
import type { RunnerLink } from "../../../channel/runner-link.js";
import { writeEach, writeFile } from "../../../files/file-writes.js";
import { sandboxFiles } from "../../../files/files.js";
import type { SandboxPlan } from "../../../plan/plan.js";
import type { CommandContext } from "../../../process/start-command.js";
import type { FileWrite } from "../../../sandbox-types.js";
import { readIfThere } from "./image-files.js";
import { authoritiesOfJava, findJava } from "./java-store.js";
import { writeKeyStore } from "./key-store.js";
import { trustInNss } from "./nss-database.js";
import {
  AUTHORITY,
  BUNDLE,
  bundleVariables,
  JAVA_STORE,
  PHP_DIRECTORY,
  settingsFiles,
} from "./trust-files.js";

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
