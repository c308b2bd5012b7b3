import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readPageAsset } from "../../src/lib/http/page-html.js";
import { packageRoot } from "../../src/package-root.js";
import { Sandbox } from "../../src/sandbox/sandbox.js";
import { MemoryBudget } from "../../src/services/serve/http/memory-budget.js";
import { serveHttp } from "../../src/services/serve/http/serve-http.js";
import { clientOfToken } from "../../src/services/serve/http/served-client.js";
import { overviewCalls } from "../../src/services/serve/overview/overview-calls.js";
import { Capacity } from "../../src/services/serve/sandboxes/capacity.js";
import { SandboxSet } from "../../src/services/serve/sandboxes/sandbox-set.js";
import type { Overview, SandboxOverview } from "../../src/services/serve/wire/overview-schemas.js";
import { temporaryDirectory } from "../support/sandbox.js";
import { openServed, type Served } from "../support/served.js";
import { withReason } from "../support/skip-reasons.js";
import { testProgram } from "../support/test-program.js";
import { openBrowser, watchMisdeeds } from "../support/view/browser.js";
import { accessibilityFaults } from "../support/view/view-page.js";

const chromium = await testProgram("chromium");

interface OpenedPage extends AsyncDisposable {
  page: Page;
  /** What the page did that it may not do. A refused token is an error on the console of a browser. */
  misdeeds(): string[];
}

type ContextOptions = NonNullable<Parameters<Browser["newContext"]>[0]>;

async function openPage(
  browser: Browser,
  url: string,
  { token, fragment = "", ...options }: ContextOptions & { token?: string; fragment?: string } = {},
): Promise<OpenedPage> {
  const context: BrowserContext = await browser.newContext({
    viewport: { width: 1280, height: 800 },
    ...options,
  });
  const page = await context.newPage();
  const { list } = watchMisdeeds(page, { origin: url });
  await page.goto(`${url}/${fragment}`);
  if (token !== undefined) {
    await page.getByLabel("Token").fill(token);
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Sign out" }).waitFor();
  }
  return {
    page,
    misdeeds: () => list.filter((one) => !one.includes("status of 401")),
    [Symbol.asyncDispose]: () => context.close(),
  };
}

async function read<T>(served: Pick<Served, "url">, path: string, token: string): Promise<T> {
  const response = await fetch(`${served.url}${path}`, { headers: { authorization: `Bearer ${token}` } });
  expect(response.status, path).toBe(200);
  return (await response.json()) as T;
}

/** Nothing was made of the texts but text, and nothing in it changes how it is read. */
async function checkInert(page: Page): Promise<void> {
  const isOwned = await page.evaluate("'owned' in window");
  const active = await page.locator("#page :is(script, img, iframe, base, object, embed, b)").count();
  const links = await page.locator("a:not([href^='#'])").count();
  const text = `${await page.locator("body").innerText()}${await page.title()}`;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  const hidden = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b\u202a-\u202e\u2066-\u2069]/.exec(text);
  expect({ isOwned, active, links, hidden }).toEqual({ isOwned: false, active: 0, links: 0, hidden: null });
}

/** By how many pixels it is wider than the window. */
async function overflow(page: Page): Promise<number> {
  return await page.evaluate<number>("document.documentElement.scrollWidth - window.innerWidth");
}

const title = withReason("the page of a service, in Chromium", chromium.missing);
describe.skipIf(chromium.missing !== null)(title, () => {
  let browser: Browser;
  let served: Served;

  beforeAll(async () => {
    browser = await openBrowser();
    served = await openServed({
      hasPage: true,
      allowsNetwork: true,
      limits: { maxPlaces: 12, maxPerClient: 10, maxLifeMs: 24 * 3_600_000 },
      clients: [{ rights: { seesAll: true, mayChange: true } }, { quota: { maxSandboxes: 5 } }],
    });
  });

  afterAll(async () => {
    await browser?.close();
    await served?.[Symbol.asyncDispose]();
  });

  it("is sent without a token, holds nothing, and may run its own code only", async () => {
    const response = await fetch(`${served.url}/`);
    const html = await response.text();
    expect(response.status).toBe(200);
    expect(response.headers.get("content-type")).toBe("text/html; charset=utf-8");
    const policy = response.headers.get("content-security-policy") ?? "";
    expect(policy).toMatch(/^default-src 'none'; script-src 'sha256-[^']+'; style-src 'sha256-[^']+'; /);
    expect(policy).toContain("connect-src 'self'");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toContain("unsafe");
    for (const token of served.tokens) expect(html).not.toContain(token);
    expect((await fetch(`${served.url}/`, { method: "POST" })).status).toBe(405);
    for (const path of ["/v1/overview", "/v1/overview/abc"])
      expect((await fetch(`${served.url}${path}`)).status, path).toBe(401);
    const foreign = { headers: { origin: "https://example.com" } };
    expect((await fetch(`${served.url}/`, foreign)).status).toBe(403);
  });

  it("takes a token that is typed in, keeps it in its tab, and puts it into no address and no cookie", async () => {
    await using opened = await openPage(browser, served.url);
    const { page } = opened;
    const addresses: string[] = [];
    page.on("request", (request) => addresses.push(request.url()));
    await page.getByLabel("Token").fill("x".repeat(32));
    await page.keyboard.press("Enter");
    await expect.poll(() => page.getByRole("alert").innerText()).toContain("The token is not valid");
    await page.getByLabel("Token").fill(served.tokens[0]);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("Places taken").waitFor();
    await page.reload();
    await page.getByText("Places taken").waitFor();
    const kept = await page.evaluate<string>(
      "document.cookie + JSON.stringify(localStorage) + location.href + document.title",
    );
    expect(kept).not.toContain(served.tokens[0]);
    expect(addresses.length).toBeGreaterThan(1);
    expect(addresses.filter((one) => one.includes(served.tokens[0]))).toEqual([]);
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByLabel("Token").waitFor();
    expect(await page.evaluate("sessionStorage.length")).toBe(0);
    expect(opened.misdeeds()).toEqual([]);
  });

  it("shows what comes, runs and goes, without being loaded again", async () => {
    await using opened = await openPage(browser, served.url, { token: served.tokens[0] });
    const { page } = opened;
    await using sandbox = await served.otherClient.createSandbox({
      network: "allowlist:example.com",
      labels: { team: "search" },
    });
    const row = page.getByRole("row", { name: sandbox.id.slice(0, 12) });
    await row.waitFor();
    await expect.poll(() => row.innerText()).toContain("team=search");
    await expect.poll(() => row.innerText()).toContain("allowlist:example.com");
    const process = await sandbox.spawn(["sh", "-c", "read line; exit 7"]);
    await expect.poll(() => row.innerText()).toMatch(/read line; exit 7'\s+running/);
    process.stdin?.end("\n");
    await expect.poll(() => row.innerText()).toContain("exit 7");
    await sandbox.exec(["curl", "-s", "http://refused.example.org/"]);
    await expect.poll(() => row.innerText()).toMatch(/0 allowed, 1 refused/);
    // Two looks give a figure of processors, and one of memory.
    await expect.poll(() => row.innerText()).toMatch(/\d [KM]iB of [\d.]+ GiB\s+[\d.]+ % CPU/);
    await row.getByRole("link").click();
    await page.getByRole("heading", { name: `Sandbox ${sandbox.id}` }).waitFor();
    const hosts = page.getByRole("table", { name: /^Hosts/ });
    await expect.poll(() => hosts.innerText()).toContain("refused.example.org:80");
    const commands = page.getByRole("table", { name: /^Commands/ });
    await expect.poll(() => commands.innerText()).toContain("curl -s http://refused.example.org/");
    await sandbox.delete();
    await page.getByText("This sandbox is not there any more.").waitFor();
    await page.getByRole("link", { name: "All sandboxes" }).click();
    await page.getByRole("heading", { name: "Sandboxes" }).waitFor();
    await expect.poll(() => row.count()).toBe(0);
    expect(opened.misdeeds().filter((one) => !one.includes("status of 404"))).toEqual([]);
  });

  it("ends a process, lets a sandbox live longer and removes it, for a token that may change what others have", async () => {
    await using sandbox = await served.otherClient.createSandbox({ maxLifeMs: 3_600_000 });
    const process = await sandbox.spawn(["sleep", "1000"]);
    const before = (await served.otherClient.getSandbox(sandbox.id)).record.expiresAt;
    const record = `/v1/sandboxes/${sandbox.id}/processes/${process.id}`;
    const state = async () => (await read<{ state: string }>(served, record, served.tokens[1])).state;
    await using opened = await openPage(browser, served.url, {
      token: served.tokens[0],
      fragment: `#sandbox=${sandbox.id}`,
    });
    const { page } = opened;
    await page.getByRole("button", { name: "End sleep 1000" }).click();
    // A dialog can be left, and nothing was done.
    await page.getByRole("dialog").waitFor();
    await page.keyboard.press("Escape");
    await expect.poll(() => page.getByRole("dialog").count()).toBe(0);
    expect(await state()).toBe("running");
    await page.getByRole("button", { name: "End sleep 1000" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "End" }).click();
    await expect
      .poll(() => page.getByRole("table", { name: /^Commands/ }).innerText())
      .toMatch(/SIG(?:TERM|KILL)/);
    expect(await state()).toBe("ended");
    await page.getByLabel("Let it live for").selectOption("4 hours");
    await page.getByRole("button", { name: "Extend" }).click();
    await expect
      .poll(async () => (await served.otherClient.getSandbox(sandbox.id)).record.expiresAt)
      .not.toBe(before);
    await page.getByRole("button", { name: "Remove …" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Remove" }).click();
    await page.getByText("This sandbox is not there any more.").waitFor();
    await expect(served.otherClient.getSandbox(sandbox.id)).rejects.toMatchObject({ code: "serve.unknown" });
  });

  it("shows a client only what is its own", async () => {
    await using own = await served.otherClient.createSandbox();
    await using foreign = await served.client.createSandbox({ labels: { of: "another" } });
    const seen = await read<Overview>(served, "/v1/overview", served.tokens[1]);
    expect(seen.sandboxes.map(({ id }) => id)).toEqual([own.id]);
    expect(seen.clients).toMatchObject([{ name: "1", places: 1, waiting: 0, quota: { maxSandboxes: 5 } }]);
    expect(JSON.stringify(seen)).not.toContain("another");
    const path = `/v1/overview/${foreign.id}`;
    const refused = await fetch(`${served.url}${path}`, {
      headers: { authorization: `Bearer ${served.tokens[1]}` },
    });
    expect([refused.status, JSON.parse(await refused.text()).error.code]).toEqual([404, "serve.unknown"]);
    const all = await read<Overview>(served, "/v1/overview?text=ANOTHER", served.tokens[0]);
    expect([all.matching, all.sandboxes[0]?.id]).toEqual([1, foreign.id]);
  });

  it("offers nothing but to look for a token that may only look", async () => {
    await using looking = await openServed({
      hasPage: true,
      clients: [{ rights: { seesAll: true, mayChange: false } }],
    });
    await using sandbox = await looking.otherClient.createSandbox();
    await sandbox.spawn(["sleep", "1000"]);
    await using opened = await openPage(browser, looking.url, {
      token: looking.tokens[0],
      fragment: `#sandbox=${sandbox.id}`,
    });
    const { page } = opened;
    await page.getByText("sleep 1000").waitFor();
    const names = await page.getByRole("button").allInnerTexts();
    expect(names).toEqual(["Skip to the content", "Sign out"]);
    await expect(looking.client.createSandbox()).rejects.toMatchObject({ code: "serve.refused" });
  });

  it("runs nothing that is in a name, an argument or a label, and hides none of it", async () => {
    const attacks = [
      "<script>window.owned=1</script>",
      "<img src=x onerror='window.owned=1'>",
      "</style><b>bold</b>",
      "\u202egnp.exe\u2066\u200b",
      "\u001b[31mred\u001b]0;title\u0007\r\nnext",
      "javascript:window.owned=1",
    ];
    const labels = Object.fromEntries(
      attacks.map((attack, at) => [`${at} ${attack}`.replaceAll("=", ""), attack]),
    );
    await using sandbox = await served.client.createSandbox({ labels, network: "allowlist:example.com" });
    for (const attack of attacks) {
      await sandbox.exec(["echo", attack]);
      await sandbox.spawn(["sh", "-c", "sleep 1000", attack]);
    }
    await sandbox.exec(["true", ...Array.from({ length: 10 }, () => "<b>".repeat(30_000))]);
    await sandbox.exec(["curl", "-sx", "http://127.0.0.1:3128", "http://<b>x</b>.example.net/"]);
    const detail = await read<SandboxOverview>(served, `/v1/overview/${sandbox.id}`, served.tokens[0]);
    expect(detail.commands.length).toBeGreaterThanOrEqual(2 * attacks.length + 1);
    expect(Math.max(...detail.commands.map(({ command }) => command.length))).toBeLessThan(500);
    await using opened = await openPage(browser, served.url, { token: served.tokens[0] });
    const { page } = opened;
    const row = page.getByRole("row", { name: sandbox.id.slice(0, 12) });
    await row.waitFor();
    await checkInert(page);
    await row.getByRole("link").click();
    await page.getByRole("table", { name: /^Commands/ }).waitFor();
    await checkInert(page);
    await page.getByRole("button", { name: /^End/ }).first().click();
    await page.getByRole("dialog").waitFor();
    await checkInert(page);
    expect(await page.evaluate("document.scripts.length")).toBe(1);
    expect(opened.misdeeds()).toEqual([]);
  });

  it("is used with the keyboard alone", async () => {
    await using sandbox = await served.client.createSandbox();
    await sandbox.spawn(["sleep", "1000"]);
    await using opened = await openPage(browser, served.url);
    const { page } = opened;
    const focused = () => page.evaluate<string>("document.activeElement?.textContent ?? ''");
    const tabTo = async (text: string) => {
      for (let presses = 0; presses < 40 && !(await focused()).startsWith(text); presses++)
        await page.keyboard.press("Tab");
      expect(await focused()).toMatch(new RegExp(`^${text}`));
    };
    // The field has the focus when the page is opened.
    await page.getByLabel("Token").waitFor();
    await page.keyboard.type(served.tokens[0]);
    await page.keyboard.press("Enter");
    await page.getByRole("row", { name: sandbox.id.slice(0, 12) }).waitFor();
    await tabTo(sandbox.id.slice(0, 12));
    await page.keyboard.press("Enter");
    await expect.poll(focused).toBe(`Sandbox ${sandbox.id}`);
    await page.getByRole("button", { name: "End sleep 1000" }).waitFor();
    await tabTo("End …");
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").waitFor();
    await expect.poll(focused).toBe("Cancel");
    await page.keyboard.press("Enter");
    await expect.poll(() => page.getByRole("dialog").count()).toBe(0);
    await page.goBack();
    await expect.poll(focused).toBe("Sandboxes");
  });

  describe.each([
    ["wide", 1280],
    ["narrow", 390],
  ] as const)("on a %s screen", (_name, width) => {
    it.each(["light", "dark"] as const)(
      "in the %s theme axe-core finds nothing wrong, and nothing is wider than the screen",
      async (colorScheme) => {
        await using sandbox = await served.client.createSandbox({
          network: "allowlist:example.com,@npm,registry.example.com:8443",
          labels: { [`name-${"n".repeat(100)}`]: "v".repeat(250), team: "search" },
        });
        await sandbox.exec(["sh", "-c", `curl -s http://${"a".repeat(60)}.example.org/; exit 3`]);
        await sandbox.spawn(["sleep", "1000", ...Array.from({ length: 40 }, (_, at) => `argument-${at}`)]);
        await using opened = await openPage(browser, served.url, {
          viewport: { width, height: 800 },
          colorScheme,
        });
        const { page } = opened;
        const check = async (what: string) => {
          expect(await accessibilityFaults(page), what).toEqual([]);
          expect(await overflow(page), what).toBeLessThanOrEqual(0);
        };
        await page.getByLabel("Token").waitFor();
        await check("sign-in");
        await page.getByLabel("Token").fill(served.tokens[0]);
        await page.keyboard.press("Enter");
        const row = page.getByRole("row", { name: sandbox.id.slice(0, 12) });
        await row.waitFor();
        await page.locator("summary").click();
        await check("all sandboxes");
        await row.getByRole("link").click();
        await page.getByRole("table", { name: /^Commands/ }).waitFor();
        await page.getByRole("table", { name: /^Hosts/ }).waitFor();
        await check("one sandbox");
        await page.getByRole("button", { name: "Remove …" }).click();
        await page.getByRole("dialog").waitFor();
        await check("a question");
        // The test can fail: a control without a name, and a text that does not fit.
        await page.evaluate(
          "document.querySelector('dialog').append(document.createElement('select'), Object.assign(document.createElement('pre'), { textContent: 'x'.repeat(4000), style: 'position: absolute; left: 0; top: 0' }))",
        );
        expect(await accessibilityFaults(page)).not.toEqual([]);
      },
    );
  });

  it("says so when the service does not answer any more, and shows what it knows", async () => {
    const ending = await openServed({ hasPage: true });
    const sandbox = await ending.client.createSandbox();
    await using opened = await openPage(browser, ending.url, { token: ending.tokens[0] });
    const { page } = opened;
    await page.getByRole("row", { name: sandbox.id.slice(0, 12) }).waitFor();
    await ending.stop();
    await expect.poll(() => page.getByRole("alert").innerText()).toContain("the service does not answer");
    await expect(page.getByRole("row", { name: sandbox.id.slice(0, 12) }).count()).resolves.toBe(1);
  });

  it("serve-page.png of the documentation is made of it", async () => {
    await using sandbox = await served.client.createSandbox({
      labels: { team: "search", run: "7" },
      network: "allowlist:@pypi,example.com",
    });
    await using other = await served.otherClient.createSandbox({
      labels: { team: "docs" },
      mode: "read-only",
    });
    await sandbox.spawn(["python3", "-m", "http.server", "8000"]);
    await sandbox.exec(["sh", "-c", "curl -s http://tracker.example.net/"]);
    await other.exec(["python3", "-c", "raise SystemExit(1)"]);
    await using opened = await openPage(browser, served.url, {
      token: served.tokens[0],
      viewport: { width: 1280, height: 560 },
    });
    const row = opened.page.getByRole("row", { name: sandbox.id.slice(0, 12) });
    await expect.poll(() => row.innerText()).toMatch(/[\d.]+ % CPU/);
    const picture = await opened.page.screenshot({ animations: "disabled" });
    const documented = join(packageRoot, "docs/serve-page.png");
    // Fonts differ between machines, so pictures are written only when asked for, and not compared.
    if (process.env.BRIG_TEST_PICTURES === "write") await writeFile(documented, picture);
    const sizeOf = (png: Buffer) => [png.readUInt32BE(16), png.readUInt32BE(20)];
    expect(sizeOf(picture)).toEqual([1280, 560]);
    expect(sizeOf(await readFile(documented))).toEqual([1280, 560]);
  });

  describe("with 1,000 sandboxes and 10,000 processes", () => {
    const [SANDBOXES, PROCESSES_EACH] = [1000, 10];
    const token = "t".repeat(32);
    let url: string;
    let newest: string;
    const end = new AbortController();
    let ended: Promise<void>;

    beforeAll(async () => {
      // One container: what is served of each is its own.
      const folder = await temporaryDirectory();
      const sandbox = await Sandbox.create({ workspace: folder.path });
      const capacity = new Capacity({ maxPlaces: SANDBOXES, maxPerClient: SANDBOXES, maxWaiting: 64 });
      const sandboxes = new SandboxSet({
        capacity,
        open: async () => ({
          ...{ sandbox, image: "brig/base", mode: "workspace-write", network: "none", task: null },
          ...{ instruction: null, workingDirectory: "/", grade: null, onEnding: null },
          close: async () => null,
        }),
        ...{ idleMs: 3_600_000, maxLifeMs: 3_600_000 },
        onWarning: (error) => {
          throw error;
        },
      });
      const open = async (at: number) => {
        const labels = { number: `n${at}`, team: `team-${at % 7}` };
        const { id } = await sandboxes.create(`client-${at % 3}`, { labels }, { signal: end.signal });
        const { processes } = sandboxes.get(`client-${at % 3}`, id);
        for (let count = 0; count < PROCESSES_EACH; count++)
          await (await processes.start({ argv: ["true", `${count}`] })).ended;
        newest = id;
      };
      for (let at = 0; at < SANDBOXES; at += 20)
        await Promise.all(Array.from({ length: 20 }, (_, more) => open(at + more)));
      let listening: (address: string) => void = () => undefined;
      const address = new Promise<string>((resolve) => {
        listening = resolve;
      });
      const drain = new AbortController();
      const page = await readPageAsset("serve-page");
      ended = (async () => {
        try {
          await serveHttp({
            clients: () => [{ ...clientOfToken("one", token), rights: { seesAll: true, mayChange: true } }],
            calls: overviewCalls({ sandboxes, capacity, drain: drain.signal }),
            memory: new MemoryBudget(1024 ** 3),
            drain: drain.signal,
            signal: end.signal,
            onListening: listening,
            onFault: (error) => {
              throw error;
            },
            page,
          });
        } catch (error) {
          if (!end.signal.aborted) throw error;
        } finally {
          await sandboxes.close();
          await sandbox.close();
          await folder[Symbol.asyncDispose]();
        }
      })();
      url = await address;
    });

    afterAll(async () => {
      end.abort();
      await ended;
    });

    it("has few rows and small answers, and finds each", async () => {
      await using opened = await openPage(browser, url, { token });
      const { page } = opened;
      await expect.poll(() => page.locator(".pager").innerText()).toMatch(/^1 to 50 of 1,000 sandboxes/);
      await page.getByRole("button", { name: "Next" }).click();
      await expect.poll(() => page.locator(".pager").innerText()).toMatch(/^51 to 100 of 1,000 sandboxes/);
      expect(await page.locator("*").count()).toBeLessThan(4000);
      await page.getByRole("searchbox").fill("number=N417");
      await expect.poll(() => page.locator(".pager").innerText()).toBe("1 to 1 of 1 sandboxes");
      await page.getByRole("searchbox").fill("team-3");
      await expect.poll(() => page.locator(".pager").innerText()).toMatch(/^1 to 50 of 143 sandboxes/);
      await page.getByLabel("Order").selectOption("oldest first");
      await expect.poll(() => page.locator("table.cards tbody").last().innerText()).toContain("number=n3");
      const response = await fetch(`${url}/v1/overview?count=100`, {
        headers: { authorization: `Bearer ${token}` },
      });
      const bytes = (await response.arrayBuffer()).byteLength;
      expect(bytes).toBeGreaterThan(10_000);
      expect(bytes).toBeLessThan(100_000);
      const detail = await read<SandboxOverview>({ url }, `/v1/overview/${newest}?from=4&count=3`, token);
      expect([detail.commandCount, detail.commands.map(({ command }) => command)]).toEqual([
        10,
        ["true 5", "true 4", "true 3"],
      ]);
      expect(opened.misdeeds()).toEqual([]);
    });
  });
});
