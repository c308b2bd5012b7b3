import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { brig } from "../support/cli.js";
import { companyProxy } from "../support/company-proxy.js";
import { temporaryDirectory } from "../support/sandbox.js";
import { tlsServer } from "../support/tls-server.js";

const HOST = "issuer.example";

it.each([
  ["HTTPS_PROXY", true],
  ["all_proxy", true],
  ["HTTPS_PROXY", false],
])(
  "a login goes through the tunnel of %s, and trusts the authority of NODE_EXTRA_CA_CERTS: %s",
  async (variable, isTrusted) => {
    const directory = await temporaryDirectory();
    onTestFinished(() => directory[Symbol.asyncDispose]());
    const asked: (string | undefined)[] = [];
    await using server = await tlsServer(HOST, (request, response) => {
      asked.push(request.url);
      response.writeHead(404).end();
    });
    await using proxy = await companyProxy({ tunnelPorts: [server.port] });
    const authority = join(directory.path, "company.pem");
    await writeFile(authority, server.authority);
    const issuer = `https://${HOST}:${server.port}`;
    const { exitCode, stderr } = await brig(
      ["login", "--device-auth", "-c", `oauth.issuer=${issuer}`, "-c", "oauth.client_id=brig"],
      {
        cwd: directory.path,
        env: {
          ...{ BRIG_HOME: join(directory.path, "home"), CODEX_HOME: join(directory.path, "home") },
          ...{ HTTPS_PROXY: "", NO_PROXY: "", no_proxy: "", [variable]: proxy.url },
          ...(isTrusted && { NODE_EXTRA_CA_CERTS: authority }),
        },
      },
    );
    expect(exitCode).not.toBe(0);
    expect(stderr).not.toContain("p%40ss");
    const authorization = expect.stringMatching(/^Basic /);
    expect(proxy.asked).toEqual([{ line: `CONNECT ${HOST}:${server.port}`, authorization }]);
    expect(asked).toEqual(isTrusted ? ["/.well-known/openid-configuration"] : []);
  },
);
