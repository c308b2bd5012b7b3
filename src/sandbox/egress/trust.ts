import { rootCertificates } from "node:tls";
import { isBrigError } from "../../errors.js";
import type { RunnerLink } from "../channel/runner-link.js";
import { readFile } from "../files/file-reads.js";
import { writeFile } from "../files/file-writes.js";
import type { CommandContext } from "../process/start-command.js";

/** In every container, and never a part of the image or of the workspace. */
const BUNDLE = "/dev/shm/brig-certificates.pem";
const AUTHORITY = "/dev/shm/brig-authority.pem";
/** Where distributions keep the certificates of all authorities that they trust. */
const SYSTEM_BUNDLES = [
  "/etc/ssl/certs/ca-certificates.crt",
  "/etc/pki/tls/certs/ca-bundle.crt",
  "/etc/ssl/ca-bundle.pem",
  "/etc/ssl/cert.pem",
];
const BUNDLE_MAX_BYTES = 8 * 1024 * 1024;
const CERTIFICATE = /-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----/g;

/** Each replaces the list of authorities of some programs. */
const BUNDLE_VARIABLES = [
  ...["SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "PIP_CERT", "GIT_SSL_CAINFO", "AWS_CA_BUNDLE"],
  ...["CARGO_HTTP_CAINFO", "NIX_SSL_CERT_FILE", "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", "HEX_CACERTS_PATH"],
  ...["CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE", "BUNDLE_SSL_CA_CERT"],
];
/** Each adds to the authorities that the program trusts already. */
const ADDED_VARIABLES = ["NODE_EXTRA_CA_CERTS", "DENO_CERT"];

/**
 * Makes programs in a sandbox trust one more authority: writes the image's own certificates and this one to a file.
 * Returns the variables that lead programs to it.
 */
export async function trustInside(
  link: RunnerLink,
  certificate: string,
  { SSL_CERT_FILE: own }: Readonly<Record<string, string>>,
): Promise<Record<string, string>> {
  const context: CommandContext = { link, cwd: "/", env: {}, onStuck: () => undefined };
  const paths = own?.startsWith("/") ? [own, ...SYSTEM_BUNDLES] : SYSTEM_BUNDLES;
  const certificates = (await firstBundle(context, paths)) ?? rootCertificates;
  const bundle = [...certificates, certificate.trim(), ""].join("\n");
  await writeFile(context, { path: BUNDLE, data: bundle, mode: 0o444 });
  await writeFile(context, { path: AUTHORITY, data: certificate, mode: 0o444 });
  return Object.fromEntries([
    ...BUNDLE_VARIABLES.map((name) => [name, BUNDLE]),
    ...ADDED_VARIABLES.map((name) => [name, AUTHORITY]),
  ]);
}

/** Null for an image without certificates. What an image has there may be anything. */
async function firstBundle(
  context: CommandContext,
  paths: readonly string[],
): Promise<readonly string[] | null> {
  for (const path of paths) {
    try {
      const text = (await readFile(context, path, { maxBytes: BUNDLE_MAX_BYTES })).toString("latin1");
      const found = text.match(CERTIFICATE);
      if (found !== null) return found;
    } catch (error) {
      if (isBrigError(error, "sandbox.gone")) throw error;
    }
  }
  return null;
}
