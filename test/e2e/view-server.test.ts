import { once } from "node:events";
import { appendFile, mkdir, readFile, writeFile } from "node:fs/promises";
import { request } from "node:http";
import { connect } from "node:net";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { describe, expect } from "vitest";
import { brig } from "../support/cli.js";
import { sandboxTest, temporaryDirectory } from "../support/sandbox.js";
import { withReason } from "../support/skip-reasons.js";
import { testProgram } from "../support/test-program.js";
import { openBrowser } from "../support/view/browser.js";
import {
  attemptResult,
  exampleFileNames,
  exampleFiles,
  mixedRun,
  writeRun,
} from "../support/view/run-fixture.js";
import { openAddress, shownTasks } from "../support/view/view-page.js";

const chromium = await testProgram("chromium");

interface Answer {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  body: string;
}

/** A running `brig view`, and how to ask it. */
class ViewProcess implements AsyncDisposable {
  readonly url: URL;
  readonly token: string;
  readonly #process: ReturnType<typeof brig>;

  private constructor(url: string, process: ReturnType<typeof brig>) {
    this.url = new URL(url);
    this.token = this.url.hash.replace("#token=", "");
    this.#process = process;
  }

  static async start(run: string): Promise<ViewProcess> {
    const process = brig(["view", run]);
    const [line] = await once(createInterface({ input: process.stdout }), "line");
    return new ViewProcess(String(line), process);
  }

  async get(path: string, { method = "GET", ...headers }: Record<string, string> = {}): Promise<Answer> {
    return await new Promise((resolve, reject) => {
      const asked = request({ host: "127.0.0.1", port: this.url.port, path, method, headers }, (response) => {
        const pieces: Buffer[] = [];
        response.on("data", (piece: Buffer) => pieces.push(piece));
        response.on("end", () =>
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            body: Buffer.concat(pieces).toString(),
          }),
        );
      });
      asked.on("error", reject).end();
    });
  }

  async getJson(path: string): Promise<Record<string, unknown>> {
    const { status, body } = await this.get(path, { authorization: `Bearer ${this.token}` });
    expect(status, body).toBe(200);
    return JSON.parse(body);
  }

  /** Interrupts it as ctrl-C does. */
  async interrupt() {
    this.#process.kill("SIGINT");
    return await this.#process;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#process.kill("SIGKILL");
    await this.#process;
  }
}

const viewTest = sandboxTest.extend<{ run: string; view: ViewProcess }>({
  // biome-ignore lint/correctness/noEmptyPattern: a fixture names what it needs, and this one needs nothing
  run: async ({}, use) => {
    await using folder = await temporaryDirectory();
    const run = join(folder.path, "run");
    await writeRun(run, mixedRun(4));
    await use(run);
  },
  view: async ({ run }, use) => {
    await using view = await ViewProcess.start(run);
    await use(view);
  },
});

describe("the server of brig view", () => {
  viewTest("prints an address with a token, and ends by ctrl-C with connections open", async ({ view }) => {
    expect(view.url.origin).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    expect(view.token).toMatch(/^[0-9a-f]{64}$/);
    const idle = connect(Number(view.url.port), "127.0.0.1");
    await new Promise((resolve) => idle.once("connect", resolve));
    const { exitCode, stderr } = await view.interrupt();
    idle.destroy();
    expect(exitCode).toBe(0);
    expect(stderr).toBe("Open this address in a browser. ctrl-C ends the server.\n");
  });

  viewTest("prints the address as JSON", async ({ run }) => {
    const process = brig(["view", run, "--json"]);
    await once(process.stdout, "data");
    process.kill("SIGINT");
    const { stdout } = await process;
    expect(JSON.parse(stdout)).toEqual({ url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/#token=/) });
  });

  viewTest("serves the page without a token and nothing of the run with it", async ({ view, run }) => {
    const { status, headers, body } = await view.get("/");
    expect(status).toBe(200);
    const policy = String(headers["content-security-policy"]);
    expect(policy).toMatch(/^default-src 'none'; script-src 'sha256-[^']+'; style-src 'sha256-[^']+'; /);
    expect(policy).toMatch(/connect-src 'self';.* frame-ancestors 'none'/);
    expect(body).not.toContain(view.token);
    const [line = ""] = (await readFile(join(run, "results.jsonl"), "utf8")).split("\n");
    expect(body).not.toContain(JSON.parse(line).task);
  });

  viewTest.for([
    ["without a token", {}, 401],
    ["with a wrong token", { authorization: `Bearer ${"0".repeat(64)}` }, 401],
    ["with the token as a password", { authorization: "Basic TOKEN" }, 401],
    ["with the token as a cookie", { cookie: "token=TOKEN" }, 401],
    ["with the name of another machine", { authorization: "Bearer TOKEN", host: "example.com" }, 403],
    ["from another page", { authorization: "Bearer TOKEN", origin: "https://example.com" }, 403],
    [
      "from another port of this machine",
      { authorization: "Bearer TOKEN", origin: "http://127.0.0.1:1" },
      403,
    ],
    ["from a file", { authorization: "Bearer TOKEN", origin: "null" }, 403],
    ["to change something", { authorization: "Bearer TOKEN", method: "POST" }, 405],
    ["with everything right", { authorization: "Bearer TOKEN" }, 200],
  ] as const)("a request %s is answered with its status", async ([, headers, expected], { view }) => {
    const given = Object.entries(headers).map(([name, value]) => [name, value.replace("TOKEN", view.token)]);
    for (const path of ["/api/runs", "/api/runs/0/changes", "/api/runs/0/attempts/0?generation=1"]) {
      // The rows are there after the first question for changes.
      await view.getJson("/api/runs/0/changes");
      const { status, body } = await view.get(path, Object.fromEntries(given));
      expect([path, status]).toEqual([path, expected]);
      if (expected !== 200) expect(body).not.toContain("example/parsing");
    }
  });

  viewTest.for([
    "/api/runs/1/changes",
    "/api/runs/0/attempts/99?generation=1",
    "/api/runs/0/attempts/-1?generation=1",
    "/api/runs/0/attempts/../../batch.json",
    "/batch.json",
    "/..%2f..%2fetc/passwd",
    "//example.com/api/runs",
  ])("there is nothing at %s", async (path, { view }) => {
    await view.getJson("/api/runs/0/changes");
    const { status } = await view.get(path, { authorization: `Bearer ${view.token}` });
    expect(status).toBe(404);
  });

  viewTest(
    "sends what is new since the last question, and all of it after the file was replaced",
    async ({ view, run }) => {
      const first = await view.getJson("/api/runs/0/changes?generation=0&since=0");
      expect(first).toMatchObject({ seq: 4, hasMore: false, header: { name: "run" } });
      const next = attemptResult({ task: "new" });
      await appendFile(join(run, "results.jsonl"), `${JSON.stringify(next)}\n`);
      const { generation, seq } = first;
      const second = await view.getJson(`/api/runs/0/changes?generation=${generation}&since=${seq}`);
      expect(second).toMatchObject({ seq: 5, header: null, rows: [{ at: 4, row: { task: "new" } }] });
      await writeFile(join(run, "results.jsonl"), `${JSON.stringify(next)}\n`);
      const third = await view.getJson(`/api/runs/0/changes?generation=${generation}&since=5`);
      expect(third).toMatchObject({ seq: 1, rows: [{ at: 0, row: { task: "new" } }] });
      const stale = await view.get(`/api/runs/0/attempts/0?generation=${generation}`, {
        authorization: `Bearer ${view.token}`,
      });
      expect(stale.status).toBe(409);
    },
  );

  const followed = withReason("is followed by the page while the run goes on", chromium.missing);
  viewTest.skipIf(chromium.missing !== null)(followed, async ({ view, run }) => {
    await using browser = await openBrowser();
    await using opened = await openAddress(browser, view.url.href);
    const { page, misdeeds } = opened;
    await expect.poll(() => shownTasks(page)).toHaveLength(4);
    // Nobody who reads the address over a shoulder, or in a link, gets the token.
    expect(page.url()).not.toContain(view.token);
    const task = "example/added";
    const added = attemptResult({ task, reward: 0, files: exampleFileNames });
    const files = exampleFiles(task, { output: "1 failed, later" });
    for (const [path, text] of Object.entries(files)) {
      const file = join(run, "attempts/example__added/1", path);
      await mkdir(dirname(file), { recursive: true });
      await writeFile(file, text);
    }
    await appendFile(join(run, "results.jsonl"), `${JSON.stringify(added)}\n`);
    await page.getByRole("link", { name: "example/added #1" }).click();
    await page.getByRole("tab", { name: "Test output" }).click();
    await expect.poll(() => page.getByRole("tabpanel").innerText()).toContain("1 failed, later");
    await page.reload();
    await expect.poll(() => page.getByRole("tabpanel").innerText()).toContain("1 failed, later");
    expect(misdeeds).toEqual([]);
    await view.interrupt();
    await expect
      .poll(() => page.getByRole("alert").innerText())
      .toBe("The server does not answer any more. The page shows what it sent before.");
  });

  const withoutToken = withReason("shows nothing to a page without the token", chromium.missing);
  viewTest.skipIf(chromium.missing !== null)(withoutToken, async ({ view }) => {
    await using browser = await openBrowser();
    await using opened = await openAddress(browser, `${view.url.origin}/`);
    await expect
      .poll(() => opened.page.getByRole("alert").innerText())
      .toBe("Open the address that brig view printed: it contains a token.");
  });
});
