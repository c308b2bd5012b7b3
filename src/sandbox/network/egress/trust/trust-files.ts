import type { FileWrite } from "../../../sandbox-types.js";

/** A directory that every container has, and that is never a part of the image or of the workspace. */
const DIRECTORY = "/dev/shm";
/** The certificates that the image trusts, and that of the sandbox's authority. */
export const BUNDLE = `${DIRECTORY}/brig-certificates.pem`;
export const AUTHORITY = `${DIRECTORY}/brig-authority.pem`;
/** The same certificates as in `BUNDLE`, for JVMs. */
export const JAVA_STORE = `${DIRECTORY}/brig-certificates.jks`;
const WGETRC = `${DIRECTORY}/brig-wgetrc`;
const APT_CONFIG = `${DIRECTORY}/brig-apt.conf`;
/** PHP reads every file that ends with .ini in a directory. */
export const PHP_DIRECTORY = `${DIRECTORY}/brig-php`;

/** Each replaces the list of authorities of some programs. */
const BUNDLE_VARIABLES = [
  ...["SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "PIP_CERT", "GIT_SSL_CAINFO", "AWS_CA_BUNDLE"],
  ...["CARGO_HTTP_CAINFO", "NIX_SSL_CERT_FILE", "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", "HEX_CACERTS_PATH"],
  ...["CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE", "BUNDLE_SSL_CA_CERT", "PERL_LWP_SSL_CA_FILE"],
];
/** Each adds to the authorities that the program trusts already. */
const ADDED_VARIABLES = ["NODE_EXTRA_CA_CERTS", "DENO_CERT"];

/** Files for programs that take the path of the certificates only from a file of settings. */
export const settingsFiles: readonly FileWrite[] = [
  { path: WGETRC, data: `ca_certificate = ${BUNDLE}\n` },
  { path: APT_CONFIG, data: `Acquire::https::CaInfo "${BUNDLE}";\n` },
  { path: `${PHP_DIRECTORY}/brig.ini`, data: `curl.cainfo = "${BUNDLE}"\n` },
];

/** An image's own file of settings is left to the program, since it cannot name another one. */
export function bundleVariables(image: Readonly<Record<string, string>>): Record<string, string> {
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
