import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { awsProblem } from "../../../support/aws-signatures.js";
import { eventually } from "../../../support/egress-place.js";
import { openTestSandbox, type TestSandbox } from "../../../support/sandbox.js";
import { tlsServer } from "../../../support/tls-server.js";

const HOST = "host.internal";
const KEYS = {
  accessKeyId: "ASIAQ7ONLYOUTSIDE451",
  secretAccessKey: "Xq7/only+outside/of+the/sandbox/0451abcd",
};
const TOKEN = "IQoJb3JpZ2luX2VjE-only-outside-of-the-sandbox";
/** By the path, what the server found wrong about each request, and its body. */
const received: { url: string | undefined; problem: string | null; body: string; accessKeyId: string }[] = [];
let server: Awaited<ReturnType<typeof tlsServer>>;
let opened: TestSandbox;
let folder: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "brig-aws-"));
  server = await tlsServer(HOST, async (request, response) => {
    const { method = "", url = "", rawHeaders } = request;
    const body = await buffer(request);
    const [, number] = /Credential=ASIAEXPIRING0*(\d+)\//.exec(request.headers.authorization ?? "") ?? [];
    const keys =
      number === undefined
        ? KEYS
        : {
            accessKeyId: `ASIAEXPIRING${number.padStart(8, "0")}`,
            secretAccessKey: `expiring/secret/key/${number}`,
          };
    const problem = awsProblem({ method, url, rawHeaders, body }, keys);
    received.push({ url, problem, body: body.toString(), accessKeyId: keys.accessKeyId });
    response.statusCode = problem === null ? 200 : 403;
    response.end(problem ?? `stored for ${request.headers["x-amz-security-token"]}\n`);
  });
  const write = (name: string, input: string) =>
    execFileSync("tee", [join(folder, name)], { input, stdio: ["pipe", "ignore", "inherit"] });
  write("company.pem", server.authority);
  const keys = { Version: 1, AccessKeyId: KEYS.accessKeyId, SecretAccessKey: KEYS.secretAccessKey };
  write("keys.json", JSON.stringify({ ...keys, SessionToken: TOKEN }));
  opened = await openTestSandbox({
    network: `allowlist:${HOST}:${server.port}`,
    egress: {
      ca_files: [join(folder, "company.pem")],
      aws_keys: {
        AWS: {
          hosts: [`${HOST}:${server.port}`],
          services: ["s3", "dynamodb"],
          command: ["cat", join(folder, "keys.json")],
        },
      },
    },
  });
}, 120_000);

afterAll(async () => {
  await opened?.[Symbol.asyncDispose]();
  await server?.[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

async function run(script: string) {
  received.length = 0;
  const { stdout, stderr } = await opened.sandbox.exec(["bash", "-c", script], { timeoutMs: 60_000 });
  return { stdout: stdout.toString(), stderr: stderr.toString() };
}

/** As a program of AWS does, with what it finds in its variables. */
function curl(service: string, rest: string): string {
  return `curl -sS --aws-sigv4 aws:amz:eu-test-1:${service} --user "$AWS_ACCESS_KEY_ID:$AWS_SECRET_ACCESS_KEY" -H "x-amz-security-token: $AWS_SESSION_TOKEN" ${rest}`;
}

const url = (path: string) => `'https://${HOST}:${server.port}${path}'`;

describe("a key of AWS", () => {
  it("signs what curl sends to S3, whose answer does not have the token", async () => {
    const { stdout, stderr } = await run(`
      seq 100000 >numbers
      ${curl("s3", `-H 'x-amz-content-sha256: UNSIGNED-PAYLOAD' -T numbers ${url("/bucket/some%20key")}`)}
      ${curl("s3", `-H 'x-amz-content-sha256: UNSIGNED-PAYLOAD' -r 0-9 ${url("/bucket?list-type=2&prefix=a%2Fb")}`)}`);
    expect(stderr).toBe("");
    expect(received.map(({ url, problem }) => ({ url, problem }))).toEqual([
      { url: "/bucket/some%20key", problem: null },
      { url: "/bucket?list-type=2&prefix=a%2Fb", problem: null },
    ]);
    expect(received[0]?.body).toMatch(/^1\n2\n[\s\S]*\n100000\n$/);
    expect(stdout).toBe(`stored for ${"*".repeat(TOKEN.length)}\n`.repeat(2));
  });

  it("signs a body whose checksum no header has", async () => {
    const { stderr } = await run(
      curl("dynamodb", `-H 'X-Amz-Target: DynamoDB.ListTables' -d '{"Limit":1}' ${url("/")}`),
    );
    expect(stderr).toBe("");
    expect(received).toMatchObject([{ url: "/", problem: null, body: '{"Limit":1}' }]);
  });

  it("is refused by the server without brig, which shows that the server checks", async () => {
    const { stdout } = await run(
      curl("dynamodb", `-d x ${url("/")}`).replace('"$AWS_ACCESS_KEY_ID:', '"AKIASOMEBODYELSE2345:'),
    );
    expect(stdout).toContain("the secret AWS may not be sent");
    const { stdout: other } = await run(
      `curl -sS --aws-sigv4 aws:amz:eu-test-1:dynamodb --user AKIASOMEBODYELSE2345:secret ${url("/")}`,
    );
    expect(other).toBe("unknown access key");
  });

  it("is refused for another service, in words that a model reads", async () => {
    const { stdout, stderr } = await run(
      `${curl("iam", `-d Action=CreateUser ${url("/")}`)} >/dev/null; echo $?`,
    );
    expect(stdout).toBe("0\n");
    expect(stderr).toContain("it is for the service iam, which the settings do not list");
    expect(received).toEqual([]);
  });

  it("that expires is read anew, under the same placeholder, and refused once it cannot be read", async () => {
    // Each run prints other keys, which expire in two seconds.
    const script = `
      echo run >>${folder}/runs; number=$(wc -l <${folder}/runs)
      printf '{ "Version": 1, "AccessKeyId": "ASIAEXPIRING%08d", "SecretAccessKey": "expiring/secret/key/%d",
        "SessionToken": "expiring-session-token-%d", "Expiration": "%s" }' $number $number $number "$(date -u -d '2 seconds' +%FT%TZ)"
      test ! -e ${folder}/broken`;
    await using place = await openTestSandbox({
      network: `allowlist:${HOST}:${server.port}`,
      egress: {
        ca_files: [join(folder, "company.pem")],
        aws_keys: { AWS: { hosts: [`${HOST}:${server.port}`], command: ["bash", "-c", script] } },
      },
    });
    const ask = `${curl("s3", `-H 'x-amz-content-sha256: UNSIGNED-PAYLOAD' ${url("/object")}`)} 2>&1`;
    received.length = 0;
    const loop = `until [ -e over ]; do ${ask}; sleep 0.2; done`;
    const running = place.sandbox.exec(["bash", "-c", loop], { timeoutMs: 60_000 });
    const seen = () => [...new Set(received.map(({ accessKeyId }) => accessKeyId))];
    await eventually(() => expect(seen().length).toBeGreaterThanOrEqual(3));
    expect(received.map(({ problem }) => problem).filter((problem) => problem !== null)).toEqual([]);
    expect(place.sandbox.maskSecrets?.("expiring-session-token-3")).toBe("*".repeat(24));
    writeFileSync(join(folder, "broken"), "");
    await eventually(async () => {
      const { stdout } = await place.sandbox.exec(["bash", "-c", ask]);
      expect(stdout).toContain("the keys have expired, and the command that prints them has failed");
    });
    rmSync(join(folder, "broken"));
    await eventually(async () => {
      const { stdout } = await place.sandbox.exec(["bash", "-c", ask]);
      expect(stdout).toMatch(/^stored for \*+$/m);
    });
    await place.sandbox.exec(["touch", "over"]);
    const { stdout } = await running;
    expect(stdout).toContain("stored for");
    expect(stdout).not.toContain("expiring-session-token");
  });

  it("is nowhere in the container, which has placeholders of the same form", async () => {
    const { stdout } = await run("env; cat /proc/*/environ /dev/shm/* 2>/dev/null | tr '\\0' '\\n'");
    expect(stdout).toMatch(/^AWS_ACCESS_KEY_ID=ASIA[A-Z2-7]{16}$/m);
    expect(stdout).toMatch(/^AWS_SECRET_ACCESS_KEY=[\w-]{40}$/m);
    for (const real of [KEYS.accessKeyId, KEYS.secretAccessKey, TOKEN]) expect(stdout).not.toContain(real);
  });
});
