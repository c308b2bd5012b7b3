import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { EgressAttempt } from "../../../../src/sandbox/egress/attempt.js";
import { eventually } from "../../../support/egress-place.js";
import { fixtureImage } from "../../../support/fixture-image.js";
import { type NetworkServers, startNetworkServers } from "../../../support/network-clients.js";
import { openTestSandbox, type TestSandbox } from "../../../support/sandbox.js";

const image = await fixtureImage("network-clients");

/** The ports of the servers are in the environment of each script. */
interface Client {
  name: string;
  script: string;
  /** At the end of what it prints on standard output. */
  prints: string;
  /** What is refused without the list, for example `registry.test:$HTTPS_PORT`. */
  refused: string[];
}

const throughTheProxy: Client[] = [
  {
    name: "curl",
    script: "curl -sS http://registry.test:$HTTP_PORT/page.txt https://registry.test:$HTTPS_PORT/page.txt",
    prints: "a page\na page\n",
    refused: ["registry.test:$HTTP_PORT", "registry.test:$HTTPS_PORT"],
  },
  {
    name: "wget",
    script:
      "wget -q -O - http://registry.test:$HTTP_PORT/page.txt https://registry.test:$HTTPS_PORT/page.txt",
    prints: "a page\na page\n",
    refused: ["registry.test:$HTTP_PORT", "registry.test:$HTTPS_PORT"],
  },
  {
    name: "Python's urllib",
    script: `python3 -c 'import sys, urllib.request as u; [print(u.urlopen(url).read().decode(), end="") for url in sys.argv[1:]]' \
      http://registry.test:$HTTP_PORT/page.txt https://registry.test:$HTTPS_PORT/page.txt`,
    prints: "a page\na page\n",
    refused: ["registry.test:$HTTP_PORT"],
  },
  {
    name: "Node's fetch",
    script: `NODE_EXTRA_CA_CERTS=/srv/tls/ca.pem \
      node -e 'fetch(process.argv[1]).then(async (answer) => process.stdout.write(await answer.text()))' \
      https://registry.test:$HTTPS_PORT/page.txt`,
    prints: "a page\n",
    refused: ["registry.test:$HTTPS_PORT"],
  },
  {
    name: "git over HTTPS",
    script: `
      git clone -q https://git.test:$HTTPS_PORT/git/project.git
      cd project
      cat README
      head -c 3000000 /dev/urandom >large && git add large && git commit -qm large
      git push -q origin HEAD:refs/heads/large
      git ls-remote --heads origin | cut -f 2`,
    prints: "tiny project\nrefs/heads/large\nrefs/heads/main\n",
    refused: ["git.test:$HTTPS_PORT"],
  },
  {
    name: "git over HTTP",
    script: "git clone -q http://git.test:$HTTP_PORT/git/project.git && cat project/README",
    prints: "tiny project\n",
    refused: ["git.test:$HTTP_PORT"],
  },
  {
    name: "npm",
    script: `
      echo '{ "name": "a", "version": "1.0.0", "dependencies": { "tiny-module": "1.0.0" } }' >package.json
      export NODE_EXTRA_CA_CERTS=/srv/tls/ca.pem npm_config_registry=https://registry.test:$HTTPS_PORT/npm/
      npm install --silent --package-lock-only && rm -rf ~/.npm && npm ci --silent
      node -p 'require("tiny-module")'`,
    prints: "tiny module\n",
    refused: ["registry.test:$HTTPS_PORT"],
  },
  {
    name: "pip",
    script: `
      pip install -q --root-user-action=ignore --retries 0 --cert /srv/tls/ca.pem \
        --index-url https://registry.test:$HTTPS_PORT/simple/ --target packages tiny-wheel
      PYTHONPATH=packages python3 -c 'import tiny_wheel; print(tiny_wheel.text)'`,
    prints: "tiny wheel\n",
    refused: ["registry.test:$HTTPS_PORT"],
  },
];

const withoutProxy: Client[] = [
  {
    name: "a JVM",
    script:
      "java -cp /opt/classes Fetch http://registry.test:$HTTP_PORT/page.txt https://registry.test:$HTTPS_PORT/page.txt",
    prints: "a page\n".repeat(4),
    refused: ["registry.test"],
  },
  {
    name: "psql",
    script: `PGPASSWORD="let me in" PGSSLMODE=verify-full PGSSLROOTCERT=/srv/tls/ca.pem \
      psql -h db.test -p $DATABASE_PORT -U postgres -Atc "select 'a row'"`,
    prints: "a row\n",
    refused: ["db.test"],
  },
  {
    name: "ssh, and git over it",
    script: `
      install -m 600 /srv/ssh/client key
      export GIT_SSH_COMMAND="ssh -q -i $PWD/key -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null"
      $GIT_SSH_COMMAND -p $SSH_PORT git@git.test echo over ssh
      git clone -q ssh://git@git.test:$SSH_PORT/srv/git/project.git && cat project/README`,
    prints: "over ssh\ntiny project\n",
    refused: ["git.test"],
  },
];

const title =
  "real clients in a sandbox with an allow-list [needs Debian's packages for the image network-clients]";
describe.skipIf(image === null)(title, () => {
  const attempts: EgressAttempt[] = [];
  let servers: NetworkServers;
  let opened: TestSandbox;

  beforeAll(async () => {
    servers = await startNetworkServers(image ?? "");
    opened = await openTestSandbox({ image: image ?? "", ...network("allowlist:") });
  });
  afterAll(async () => {
    await opened?.[Symbol.asyncDispose]();
    await servers?.[Symbol.asyncDispose]();
  });

  function network(list: string) {
    return {
      network: list,
      onEgress: (attempt: EgressAttempt) => attempts.push(attempt),
      // The servers have these names only here.
      resolve: async (name: string) => (name.endsWith(".test") ? ["127.0.0.1"] : []),
    };
  }

  /** The ports are only named where programs need it that connect to what a name stands for. */
  function fullList(): string {
    const { http, https, ssh, database } = servers.ports;
    const direct = [
      `registry.test:${http}`,
      `registry.test:${https}`,
      `git.test:${ssh}`,
      `db.test:${database}`,
    ];
    return `allowlist:registry.test,git.test,127.0.0.1,${direct.join()}`;
  }

  function filledIn(text: string): string {
    const { http, https, ssh, database } = servers.ports;
    const ports: Record<string, number> = { HTTP: http, HTTPS: https, SSH: ssh, DATABASE: database };
    return text.replace(/\$([A-Z]+)_PORT/g, (_, name) => String(ports[name]));
  }

  async function run({ sandbox }: TestSandbox, script: string) {
    const inOwnFolder = `cd "$(mktemp -d)" && set -e\n${filledIn(script)}`;
    return await sandbox.exec(["bash", "-c", inOwnFolder], { timeoutMs: 120_000 });
  }

  async function expectClient(place: TestSandbox, { script, prints, refused }: Client): Promise<void> {
    place.sandbox.setNetwork(fullList());
    const allowed = await run(place, script);
    expect(allowed.stderr).not.toContain("brig refused");
    expect(allowed).toMatchObject({ exitCode: 0, stdout: expect.stringMatching(new RegExp(`${prints}$`)) });

    place.sandbox.setNetwork("none");
    const denied = await run(place, script);
    expect(denied.exitCode).not.toBe(0);
    expect(denied.stdout).not.toContain(prints);
    const note = denied.stderr.slice(denied.stderr.indexOf("[brig refused connections."));
    expect(note).toContain("Only the user can allow them, with --network:");
    for (const host of refused)
      expect(note).toContain(`no rule of this sandbox's network allow-list allows ${filledIn(host)}`);
  }

  it.each(throughTheProxy)("$name works through the proxy, and is told what was refused", async (client) => {
    attempts.length = 0;
    await expectClient(opened, client);
    expect(new Set(attempts.map(({ way }) => way)).has("direct")).toBe(false);
  });

  it.each(withoutProxy)(
    "$name works without knowing of a proxy, and is told what was refused",
    async (client) => {
      attempts.length = 0;
      await expectClient(opened, client);
      await eventually(() =>
        expect(new Set(attempts.map(({ way }) => way))).toEqual(new Set(["direct", "name"])),
      );
    },
  );

  it("apt installs packages where it may write, and is told what was refused", async () => {
    await using place = await openTestSandbox({
      ...{ image: image ?? "", mode: "danger-full-access" as const },
      ...network("allowlist:"),
    });
    await run(place, "rm -f /etc/apt/sources.list.d/*");
    await expectClient(place, {
      name: "apt",
      script: `
      rm -rf /var/lib/apt/lists/*
      echo 'deb [trusted=yes] https://registry.test:$HTTPS_PORT/debian ./' >/etc/apt/sources.list
      apt-get -qq -o Acquire::Retries=0 -o APT::Update::Error-Mode=any update
      DEBIAN_FRONTEND=noninteractive apt-get -qq install --reinstall tiny-package >log 2>&1
      cat /usr/share/tiny/text`,
      prints: "tiny package\n",
      refused: ["registry.test:$HTTPS_PORT"],
    });
  });
});
