import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { trustInNss } from "../../../../src/sandbox/network/egress/trust.js";
import type { CommandContext } from "../../../../src/sandbox/process/command.js";
import { fixtureImage } from "../../../support/fixture-image.js";
import { openTestSandbox, type TestSandbox } from "../../../support/sandbox.js";
import { tlsServer } from "../../../support/tls-server.js";

const SECRET = "sk-Xq7-only-outside-of-the-sandbox-0451";
const HOST = "host.internal";
const ANSWER = `Bearer ${"*".repeat(SECRET.length)}\n`;
const image = await fixtureImage("trust-clients");

interface Client {
  name: string;
  /** `$URL` and `$PORT` are those of the server, which answers with the header that it gets. */
  script: string;
  /** What it prints on standard output. Default: the answer. */
  prints?: string;
  /** Makes the program look for authorities where it does so by itself. */
  otherwise: string;
}

const clients: Client[] = [
  {
    name: "Java, by both clients that it brings,",
    script: "java -cp /opt/classes Ask $URL",
    prints: ANSWER + ANSWER,
    otherwise: "unset JAVA_TOOL_OPTIONS",
  },
  {
    name: "wget with GnuTLS",
    script: 'wget -q -O - --header "Authorization: Bearer $API_KEY" $URL',
    otherwise: "unset WGETRC",
  },
  {
    name: "git with GnuTLS",
    script:
      'git -c http.extraHeader="Authorization: Bearer $API_KEY" ls-remote $URL 2>&1 | grep -o "is this a git repository" || true',
    prints: "is this a git repository\n",
    otherwise: "unset GIT_SSL_CAINFO",
  },
  {
    name: "Ruby",
    script: `ruby -rnet/http -e 'puts Net::HTTP.get(URI(ENV["URL"]), {"Authorization" => "Bearer " + ENV["API_KEY"]})'`,
    otherwise: "unset SSL_CERT_FILE",
  },
  {
    name: "PHP by its streams",
    script: `php -r 'echo file_get_contents(getenv("URL"), false, stream_context_create(["http" => ["header" => "Authorization: Bearer " . getenv("API_KEY")]]));'`,
    otherwise: "unset SSL_CERT_FILE",
  },
  {
    name: "PHP by curl",
    script: `php -r '$c = curl_init(getenv("URL")); curl_setopt($c, CURLOPT_HTTPHEADER, ["Authorization: Bearer " . getenv("API_KEY")]); curl_exec($c);'`,
    otherwise: "unset PHP_INI_SCAN_DIR",
  },
  {
    name: "Perl by LWP",
    script: `perl -MLWP::UserAgent -e 'print LWP::UserAgent->new->get($ENV{URL}, Authorization => "Bearer $ENV{API_KEY}")->content'`,
    otherwise: "unset PERL_LWP_SSL_CA_FILE",
  },
  {
    name: "Perl by HTTP::Tiny",
    script: `perl -MHTTP::Tiny -e 'print HTTP::Tiny->new(verify_SSL => 1)->get($ENV{URL}, { headers => { Authorization => "Bearer $ENV{API_KEY}" } })->{content}'`,
    otherwise: "unset SSL_CERT_FILE",
  },
  {
    name: "NSS, as Chromium uses it,",
    // tstclnt stays although the server has closed the connection.
    script: `printf 'GET /x HTTP/1.1\r\nHost: ${HOST}:%s\r\nAuthorization: Bearer %s\r\n\r\n' $PORT "$API_KEY" |
      tstclnt -d sql:$HOME/.pki/nssdb -h ${HOST} -p $PORT >answer & client=$!
      until grep Bearer answer; do kill -0 $client || exit 1; sleep 0.1; done; kill $client`,
    otherwise: "certutil -D -n brig -d sql:$HOME/.pki/nssdb; rm answer",
  },
  {
    name: "apt",
    script: `/usr/lib/apt/apt-helper -o APT::Sandbox::User=root -o Acquire::Retries=0 download-file $URL $HOME/file >&2 && cat $HOME/file`,
    prints: "no key\n",
    otherwise: "rm -f $HOME/file; unset APT_CONFIG",
  },
];

const title =
  "a host with a secret, through its own trust store, [needs Debian's packages for the image trust-clients]";
describe.skipIf(image === null)(title, () => {
  let server: Awaited<ReturnType<typeof tlsServer>>;
  let folder: string;
  let opened: TestSandbox;

  beforeAll(async () => {
    server = await tlsServer(HOST, ({ headers: { authorization } }, response) => {
      response.end(authorization === `Bearer ${SECRET}` ? `${authorization}\n` : "no key\n");
    });
    folder = mkdtempSync(join(tmpdir(), "brig-trust-"));
    writeFileSync(join(folder, "company.pem"), server.authority);
    opened = await open();
  });
  afterAll(async () => {
    await opened?.[Symbol.asyncDispose]();
    await server?.[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true });
  });

  async function open(env: Record<string, string> = {}): Promise<TestSandbox> {
    const host = `${HOST}:${server.port}`;
    return await openTestSandbox({
      image: image ?? "",
      network: `allowlist:${host}`,
      egress: {
        ca_files: [join(folder, "company.pem")],
        secrets: { API_KEY: { hosts: [host], value: SECRET } },
      },
      env: { URL: `https://${host}/x`, PORT: String(server.port), ...env },
    });
  }

  async function run({ sandbox }: TestSandbox, script: string) {
    return await sandbox.exec(["bash", "-c", `cd $HOME; set -o pipefail\n${script}`], {
      timeoutMs: 60_000,
    });
  }

  it.each(clients)("is reached by $name and only by it", async ({ script, prints = ANSWER, otherwise }) => {
    expect(await run(opened, script)).toMatchObject({ stdout: prints, exitCode: 0 });
    const without = await run(opened, `${otherwise}\n${script}`);
    expect(without.stdout).not.toContain(prints.trim());
  });

  it("is reached by a JVM with further options of the user", async () => {
    await using place = await open({ JAVA_TOOL_OPTIONS: "-Dgreeting=hello" });
    const { stdout, stderr } = await run(
      place,
      "java -cp /opt/classes Ask $URL; java -XshowSettings:properties -version",
    );
    expect(stdout).toBe(ANSWER + ANSWER);
    expect(stderr).toContain("greeting = hello");
  });

  it("leaves a JVM all authorities of the image's own store", async () => {
    const fingerprints = async (store: string) => {
      const { stdout } = await run(opened, `keytool -list -storepass changeit ${store} | grep fingerprint`);
      return new Set(stdout.trim().split("\n"));
    };
    const images = await fingerprints("-cacerts");
    const given = await fingerprints("-keystore /dev/shm/brig-certificates.jks");
    expect([...images].filter((one) => !given.has(one))).toEqual([]);
    expect(given.size).toBe(images.size + 1);
  });

  it("is given to programs with NSS only in a home that is not a directory of the host", async () => {
    const { sandbox, workspace } = opened;
    const context: CommandContext = { link: sandbox.link, cwd: "/", env: {}, onStuck: () => undefined };
    const plan = { imageEnvironment: { PATH: "/usr/bin" }, home: workspace, volumes: [], mounts: [] };
    const mount = { kind: "workspace", path: workspace, access: "rw", identity: null } as const;
    await trustInNss(context, { ...plan, mounts: [mount] });
    expect(existsSync(join(workspace, ".pki"))).toBe(false);
    await trustInNss(context, plan);
    expect(existsSync(join(workspace, ".pki/nssdb/cert9.db"))).toBe(true);
  });
});
