import { X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { rootCertificates } from "node:tls";
import { describe, expect, it } from "vitest";
import { trustInside } from "../../../../../../src/sandbox/network/egress/trust.js";
import { readKeyStore, writeKeyStore } from "../../../../../../src/sandbox/network/egress/trust-key-store.js";
import { failure } from "../../../played-sandbox.js";
import { type ImageEntry, playedImage } from "./played-image.js";

const EACCES = 13;
const BUNDLE = "/dev/shm/brig-certificates.pem";
const AUTHORITY = "/dev/shm/brig-authority.pem";
const JAVA_STORE = "/dev/shm/brig-certificates.jks";
const authority = await readFile(
  join(import.meta.dirname, "../../../../../fixtures/tls/certificate.pem"),
  "utf8",
);

/** In the form of a certificate, which only programs that use it would find out to be none. */
const pem = (text: string) =>
  `-----BEGIN CERTIFICATE-----\n${Buffer.from(text).toString("base64")}\n-----END CERTIFICATE-----`;
const der = (certificate: string) => new X509Certificate(certificate).raw;

async function place(entries: Record<string, ImageEntry>, imageEnvironment: Record<string, string> = {}) {
  const { image, link } = await playedImage(entries);
  const trust = async () =>
    await trustInside(link, authority, {
      plan: { imageEnvironment, home: "/home/brig", mounts: [], volumes: [] },
    });
  return { image, trust };
}

/** The certificates in the bundle that programs get. */
async function bundleOf(entries: Record<string, ImageEntry>, variables: Record<string, string> = {}) {
  const { image, trust } = await place(entries, variables);
  await trust();
  const lines = image.written.get(BUNDLE)?.text ?? "";
  return lines.match(/-----BEGIN[\s\S]*?-----END CERTIFICATE-----/g);
}

describe("the files by which programs trust an authority", () => {
  it("are the certificates of the image with it, it alone, and settings that name them", async () => {
    const { image, trust } = await place({ "/etc/ssl/cert.pem": `${pem("one")}\n${pem("two")}\n` });
    await trust();
    const files = Object.fromEntries([...image.written].map(([path, { text }]) => [path, text]));
    expect(files).toEqual({
      [BUNDLE]: `${pem("one")}\n${pem("two")}\n${authority.trim()}\n`,
      [AUTHORITY]: authority,
      "/dev/shm/brig-wgetrc": `ca_certificate = ${BUNDLE}\n`,
      "/dev/shm/brig-apt.conf": `Acquire::https::CaInfo "${BUNDLE}";\n`,
      "/dev/shm/brig-php/brig.ini": `curl.cainfo = "${BUNDLE}"\n`,
    });
    // Commands of any user read them, and none changes them.
    expect([...image.written.values()].map(({ mode }) => mode)).toEqual(Array(5).fill(0o444));
    expect(image.made).toEqual([{ path: "/dev/shm/brig-php", mode: 0o755, flags: 1 }]);
  });

  it("are named by the variables of many programs", async () => {
    const { trust } = await place({});
    const all = (path: string, ...names: string[]) => Object.fromEntries(names.map((name) => [name, path]));
    expect(await trust()).toEqual({
      ...all(BUNDLE, "SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "PIP_CERT", "GIT_SSL_CAINFO"),
      ...all(BUNDLE, "AWS_CA_BUNDLE", "CARGO_HTTP_CAINFO", "NIX_SSL_CERT_FILE"),
      ...all(BUNDLE, "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", "HEX_CACERTS_PATH"),
      ...all(BUNDLE, "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE", "BUNDLE_SSL_CA_CERT", "PERL_LWP_SSL_CA_FILE"),
      ...all(AUTHORITY, "NODE_EXTRA_CA_CERTS", "DENO_CERT"),
      WGETRC: "/dev/shm/brig-wgetrc",
      APT_CONFIG: "/dev/shm/brig-apt.conf",
      PHP_INI_SCAN_DIR: ":/dev/shm/brig-php",
    });
  });

  it("leave an image the files of settings that it names itself", async () => {
    const own = { WGETRC: "/etc/own", APT_CONFIG: "/etc/apt-own", PHP_INI_SCAN_DIR: "/etc/php" };
    const { trust } = await place({}, own);
    expect(await trust()).toMatchObject({
      WGETRC: "/etc/own",
      APT_CONFIG: "/etc/apt-own",
      PHP_INI_SCAN_DIR: "/etc/php:/dev/shm/brig-php",
      SSL_CERT_FILE: BUNDLE,
    });
  });

  it.each([BUNDLE, AUTHORITY, "/dev/shm/brig-php", "/dev/shm/brig-php/brig.ini", JAVA_STORE])(
    "are an error where %s cannot be made",
    async (unwritable) => {
      const { image, trust } = await place({ "/bin/java": "x" }, { PATH: "/bin" });
      image.fails = (operation, path) =>
        path === unwritable && (operation === "write" || operation === "mkdir") ? EACCES : 0;
      expect(await failure(trust())).toMatchObject({ code: "file.not-permitted" });
    },
  );

  it("go into the database of NSS too, where the image has a program for it", async () => {
    const { image, trust } = await place({ "/bin/certutil": "x" }, { PATH: "/bin" });
    await trust();
    expect(image.runs.at(-1)?.argv).toEqual(expect.arrayContaining(["/bin/certutil", "-A", AUTHORITY]));
    expect(image.made.map(({ path }) => path)).toContain("/home/brig/.pki/nssdb");
  });

  it("are not waited for longer than the start of the sandbox", async () => {
    const { image, link } = await playedImage({ "/bin/certutil": "x" });
    const controller = new AbortController();
    image.runsCommand = () => {
      controller.abort(new Error("enough"));
      return undefined;
    };
    const plan = { imageEnvironment: { PATH: "/bin" }, home: "/home/brig", mounts: [], volumes: [] };
    expect(await failure(trustInside(link, authority, { plan, signal: controller.signal }))).toBe(
      controller.signal.reason,
    );
  });
});

describe("the certificates of an image", () => {
  const paths = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
  ];
  const own = authority.trim();

  it.each(paths.map((path, index) => [path, index] as const))(
    "are found at %s, and before the places after it",
    async (path, index) => {
      const later = Object.fromEntries(paths.slice(index + 1).map((one) => [one, pem("later")]));
      expect(await bundleOf({ ...later, [path]: pem("this") })).toEqual([pem("this"), own]);
    },
  );

  it("are those that its SSL_CERT_FILE names, if it is an absolute path with any", async () => {
    const entries = {
      "/opt/own.pem": pem("own"),
      "opt/own.pem": pem("own"),
      [String(paths[3])]: pem("usual"),
    };
    expect(await bundleOf(entries, { SSL_CERT_FILE: "/opt/own.pem" })).toEqual([pem("own"), own]);
    for (const SSL_CERT_FILE of ["/opt/none.pem", "opt/own.pem", ""])
      expect(await bundleOf(entries, { SSL_CERT_FILE })).toEqual([pem("usual"), own]);
  });

  it("are taken without what is between them, whatever it is", async () => {
    const spoilt = [
      "# a comment\r\n\0\x1b[31m",
      pem("one"),
      "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----",
      "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----",
      "-----BEGIN CERTIFICATE-----\nAAAA\n$(evil)\n-----END CERTIFICATE-----",
      pem("two"),
      "-----BEGIN CERTIFICATE-----\nAAAA",
    ].join("\n");
    const empty = "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----";
    expect(await bundleOf({ [String(paths[0])]: spoilt })).toEqual([pem("one"), empty, pem("two"), own]);
  });

  it("are those of the next place where a file has none, or cannot be read", async () => {
    for (const entry of ["", "no certificate", Buffer.alloc(100, 0xff), { link: "nothing" }])
      expect(await bundleOf({ [String(paths[0])]: entry, [String(paths[1])]: pem("next") })).toEqual([
        pem("next"),
        own,
      ]);
  });

  it("are not read from a file of more than 8 MiB", async () => {
    const { image, trust } = await place({ [String(paths[0])]: "x".repeat(70_000) });
    await trust();
    expect(image.requests.find(({ length, at }) => at === paths[0] && length > 70_000n)?.length).toBe(
      8n * 1024n * 1024n + 1n,
    );
  });

  it("are those of Node where it has none", async () => {
    expect(await bundleOf({})).toEqual([...rootCertificates, own]);
  });
});

describe("the key store of a JVM", () => {
  const variables = { PATH: "/jdk/bin" };
  const stored = async (entries: Record<string, ImageEntry>) => {
    const { image, trust } = await place({ "/jdk/bin/java": "x", ...entries }, variables);
    const given = await trust();
    const { data = Buffer.alloc(0), mode } = image.written.get(JAVA_STORE) ?? {};
    return { certificates: readKeyStore(data), mode, given };
  };

  it("has what the JVM trusts and the authority, and a variable leads to it", async () => {
    const cacerts = writeKeyStore([Buffer.from("one"), Buffer.from("two")]);
    const { certificates, mode, given } = await stored({ "/jdk/lib/security/cacerts": cacerts });
    expect(certificates).toEqual([Buffer.from("one"), Buffer.from("two"), der(authority)]);
    expect(mode).toBe(0o444);
    expect(given.JAVA_TOOL_OPTIONS).toBe(`-Djavax.net.ssl.trustStore=${JAVA_STORE}`);
  });

  it("has the certificates of the image where the JVM's are unknown, without those that are none", async () => {
    const [first = "", second = ""] = rootCertificates;
    const { certificates } = await stored({
      "/etc/ssl/cert.pem": [first, pem("no certificate"), second].join("\n"),
    });
    expect(certificates).toEqual([der(first), der(second), der(authority)]);
  });

  it("is not made in an image without a JVM", async () => {
    const { image, trust } = await place({}, variables);
    expect(await trust()).not.toHaveProperty("JAVA_TOOL_OPTIONS");
    expect(image.written.has(JAVA_STORE)).toBe(false);
  });
});
