import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { BrigError } from "../../../src/errors.js";
import { LABELS } from "../../../src/sandbox/labels.js";
import { writeRecord } from "../../../src/sandbox/sandbox-records.js";
import { emptyWorkspace, failure, playedPlace, recordNames } from "./played-sandbox.js";

const unanswered = new BrigError("the connection broke", { code: "engine.unreachable" });

const inWorkspace = (path: string) => ({ workspaceKind: "bind", workspace: path }) as const;

describe("the record of a sandbox", () => {
  it("says what a killed session leaves, and is gone once the sandbox is closed", async () => {
    const path = await emptyWorkspace();
    const { engine, brigHome, sandbox } = await playedPlace();
    const opened = await sandbox(inWorkspace(path));
    const [name = ""] = await recordNames(brigHome);
    expect(name).toBe(`${process.pid}.${opened.id}.json`);
    const placeholders = await readdir(path);
    expect(placeholders.length).toBeGreaterThan(2);
    expect(JSON.parse(await readFile(join(brigHome, "sandboxes", name), "utf8"))).toMatchObject({
      sessionId: opened.id,
      endpoint: engine.endpoint,
      containerId: engine.container.id,
      placeholders: expect.arrayContaining(
        placeholders.map((one) => ({ path: join(path, one), ino: expect.any(String) })),
      ),
    });
    await opened.close();
    expect(await recordNames(brigHome)).toEqual([]);
    expect(await readdir(path)).toEqual([]);
  });

  it("names the placeholders before they are made, and the container as soon as it is created", async () => {
    const path = await emptyWorkspace();
    const { engine, brigHome, open } = await playedPlace();
    const seen: object[] = [];
    const read = async () => {
      const [name = ""] = await recordNames(brigHome);
      seen.push(JSON.parse(await readFile(join(brigHome, "sandboxes", name), "utf8")));
    };
    const create = engine.createContainer;
    engine.createContainer = async (...args) => {
      await read();
      return await create(...args);
    };
    const start = engine.startContainer;
    engine.startContainer = async (id) => {
      await read();
      await start(id);
    };
    const opened = await open(inWorkspace(path));
    await opened.release({ isEnding: false });
    const [early, late] = seen as { containerId: string | null; placeholders: { ino: string | null }[] }[];
    expect(early?.containerId).toBeNull();
    expect(early?.placeholders.every(({ ino }) => ino === null)).toBe(true);
    expect(late?.containerId).toBe(engine.container.id);
    expect(late?.placeholders.some(({ ino }) => ino === null)).toBe(false);
  });

  it("that cannot be written is a warning, and the sandbox works without it", async () => {
    const { engine, brigHome, warnings, sandbox } = await playedPlace();
    await writeFile(join(brigHome, "sandboxes"), "");
    const opened = await sandbox();
    expect(warnings.length).toBeGreaterThan(0);
    for (const warning of warnings)
      expect(warning).toMatchObject({
        code: "config.invalid",
        message: expect.stringContaining(JSON.stringify(brigHome)),
      });
    warnings.length = 0;
    await opened.close();
    expect(engine.running).toEqual([]);
    expect(warnings).toEqual([expect.objectContaining({ code: "engine.failed" })]);
  });
});

/** What another session's record differs in from that of this one. */
type LeftCase = [
  string,
  boolean,
  { endpoint?: string; containerId?: string; bootId?: string; host?: string; path?: string },
];

describe("the placeholders of a sandbox that is closed", () => {
  const session = (digit: string) => `${digit.repeat(8)}-0000-0000-0000-000000000000`;

  /** One that another session needs as well, and how the sandbox is closed. */
  async function shared() {
    const path = await emptyWorkspace();
    const place = await playedPlace();
    const opened = await place.sandbox(inWorkspace(path));
    const names = await readdir(path);
    const [first = ""] = names;
    const kept = join(path, first);
    return { ...place, path, opened, names, kept };
  }

  /** Another container, as the engine lists it. */
  const listed = (sessionId: string, paths: readonly string[]) => ({
    ...{ id: "d", names: [], image: "i", state: "running", createdAt: new Date(0) },
    labels: { [LABELS.session]: sessionId, [LABELS.placeholders]: JSON.stringify(paths) },
  });

  it("stay where the container of another session has them mounted", async () => {
    const { engine, path, opened, kept } = await shared();
    engine.listContainers = async () => [listed(session("a"), [kept])] as never[];
    await opened.close();
    expect(await readdir(path)).toHaveLength(1);
    expect(existsSync(kept)).toBe(true);
  });

  it("go when only containers of the same session, or of no session, have them", async () => {
    const { engine, path, opened, kept } = await shared();
    engine.listContainers = async () => [listed(opened.id, [kept])] as never[];
    await opened.close();
    expect(await readdir(path)).toEqual([]);
  });

  it.for<LeftCase>([
    ["stay where a session that has no container yet is about to mount them", true, {}],
    [
      "stay where a session on another engine has them",
      true,
      { endpoint: "unix:///other", containerId: "d" },
    ],
    [
      "go when that session has another container, which the engine does not list",
      false,
      { containerId: "d" },
    ],
    ["go when that session's process has ended", false, { bootId: "another" }],
    ["stay where the process of that session is on another machine", true, { bootId: "x", host: "other" }],
    ["go when that session has others", false, { path: "/somewhere/else" }],
  ])(
    "%s",
    async ([, stays, { bootId, host, path: other, ...change }]: [
      string,
      boolean,
      Record<string, string>,
    ]) => {
      const { engine, brigHome, path, opened, kept } = await shared();
      const [name = ""] = await recordNames(brigHome);
      const own = JSON.parse(await readFile(join(brigHome, "sandboxes", name), "utf8"));
      const owner = { ...own.owner, ...(bootId && { bootId }), ...(host && { host }) };
      const placeholders = [{ path: other ?? kept, ino: null }];
      writeRecord(brigHome, {
        ...own,
        containerId: null,
        ...change,
        owner,
        placeholders,
        sessionId: session("b"),
      });
      let asked = 0;
      engine.listContainers = async () => {
        asked++;
        return [];
      };
      await opened.close();
      expect(existsSync(kept)).toBe(stays);
      expect(await readdir(path)).toHaveLength(stays ? 1 : 0);
      // Once more for a container that may have been created after the first answer.
      expect(asked).toBe("containerId" in change && !("endpoint" in change) ? 2 : 1);
    },
  );

  it("stay, with an error, when the engine does not say who uses them, and close may be called again", async () => {
    const { engine, path, opened, names, brigHome } = await shared();
    const list = engine.listContainers;
    engine.listContainers = async () => {
      throw unanswered;
    };
    expect(await failure(opened.close())).toMatchObject({
      code: "engine.failed",
      hint: expect.stringContaining("brig gc"),
      cause: unanswered,
    });
    expect(await readdir(path)).toEqual(names);
    expect(await recordNames(brigHome)).toHaveLength(1);
    engine.listContainers = list;
    await opened.close();
    expect(await readdir(path)).toEqual([]);
  });

  it("are not asked about when there are none, and what somebody has put into one stays", async () => {
    const { engine, sandbox } = await playedPlace();
    engine.listContainers = async () => {
      throw unanswered;
    };
    await (await sandbox()).close();
    const { path, opened, kept } = await shared();
    await rm(kept, { recursive: true });
    await mkdir(kept);
    await writeFile(join(kept, "file"), "");
    await opened.close();
    expect(existsSync(join(kept, "file"))).toBe(true);
    expect(await readdir(path)).toHaveLength(1);
  });
});

it("a sandbox that is kept has its container, its record and its placeholders after it is closed", async () => {
  const path = await emptyWorkspace();
  const { engine, brigHome, sandbox } = await playedPlace();
  const opened = await sandbox({ ...inWorkspace(path), keep: true });
  const names = await readdir(path);
  expect(await opened.close()).toMatchObject({ incomplete: "kept" });
  expect(engine.calls).toEqual(["createContainer", "attachContainer", "startContainer"]);
  expect(engine.container).toMatchObject({ state: "running", runner: { wasEnded: false } });
  expect(await recordNames(brigHome)).toHaveLength(1);
  expect(await readdir(path)).toEqual(names);
});
