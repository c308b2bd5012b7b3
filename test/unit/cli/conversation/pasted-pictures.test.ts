import { mkdir, open, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { execa } from "execa";
import { beforeEach, expect, it, onTestFinished } from "vitest";
import { pastedPictures } from "../../../../src/cli/conversation/pasted-pictures.js";
import { temporaryDirectory } from "../../../support/sandbox.js";

/** A picture of one pixel. */
const dot = Buffer.from("R0lGODlhAQABAAAAACwAAAAAAQABAAA=", "base64");

let folder: string;

beforeEach(async () => {
  const directory = await temporaryDirectory();
  onTestFinished(() => directory[Symbol.asyncDispose]());
  folder = directory.path;
  for (const name of ["dot.gif", 'it\'s a "dot".gif', "two words.GIF", "a,b.png", "ü$(x).webp"])
    await writeFile(join(folder, name), dot);
});

const paths = (text: string) => pastedPictures(text, folder)?.map(({ path }) => path) ?? null;
const file = (name: string) => join(folder, name);

it("says what a picture is, by its name and its size", async () => {
  const wide = Buffer.from(dot);
  wide.writeUInt16LE(640, 6);
  wide.writeUInt16LE(480, 8);
  await writeFile(file("wide.gif"), wide);
  await writeFile(file(`${"long".repeat(20)}.gif`), dot);
  expect(pastedPictures(file("wide.gif"), folder)).toEqual([
    { kind: "picture", path: file("wide.gif"), label: "[picture wide.gif 640x480]" },
  ]);
  expect(pastedPictures(file(`${"long".repeat(20)}.gif`), folder)?.[0]?.label).toMatch(
    /^\[picture (?:long)+lon… 1x1\]$/,
  );
});

it("finds a path however it is written", () => {
  expect(paths(file("dot.gif"))).toEqual([file("dot.gif")]);
  expect(paths(`  ${file("dot.gif")}\n`)).toEqual([file("dot.gif")]);
  expect(paths("dot.gif")).toEqual([file("dot.gif")]);
  expect(paths(`'${file("two words.GIF")}'`)).toEqual([file("two words.GIF")]);
  expect(paths(`"${file("two words.GIF")}"`)).toEqual([file("two words.GIF")]);
  expect(paths(file("two words.GIF"))).toEqual([file("two words.GIF")]);
  expect(paths(file("two\\ words.GIF"))).toEqual([file("two words.GIF")]);
  expect(paths(file('it\\\'s\\ a\\ \\"dot\\".gif'))).toEqual([file('it\'s a "dot".gif')]);
  expect(paths(`'${folder}/it'\\''s a "dot".gif'`)).toEqual([file('it\'s a "dot".gif')]);
  expect(paths(pathToFileURL(file("ü$(x).webp")).href)).toEqual([file("ü$(x).webp")]);
  expect(paths(file("a,b.png"))).toEqual([file("a,b.png")]);
});

it("finds several, one beside the other or one below the other", () => {
  const two = [file("dot.gif"), file("two words.GIF")];
  expect(paths(`${file("dot.gif")} '${file("two words.GIF")}' `)).toEqual(two);
  expect(paths(two.map((path) => pathToFileURL(path).href).join("\r\n"))).toEqual(two);
});

it("leaves any other text alone", async () => {
  await writeFile(file("text.png"), "no picture");
  await writeFile(file("empty.png"), "");
  await mkdir(file("directory.png"));
  await symlink(file("nothing"), file("dangling.png"));
  await execa("mkfifo", [file("pipe.png")]);
  const others = [
    "text.png",
    "empty.png",
    "directory.png",
    "dangling.png",
    "pipe.png",
    "missing.png",
    "dot.gif is odd",
    "see dot.gif",
    "dot.gif missing.gif",
    "'dot.gif",
    "dot.gif\0.gif",
    "/dev/zero",
    "file://elsewhere/dot.gif",
    "file:%zz.gif",
    "https://example.com/dot.gif",
    Array(30).fill("dot.gif").join(" "),
    `${"/x".repeat(500_000)}.gif`,
    `${"\\ ".repeat(500_000)}.gif`,
    `${'"'.repeat(999_999)}.gif`,
    "",
  ];
  await using pipe = await open(file("pipe.png"), "r+");
  await pipe.write(dot);
  for (const text of others) expect(pastedPictures(text, folder), text.slice(0, 80)).toBeNull();
  expect((await pipe.read(Buffer.alloc(100))).bytesRead).toBe(dot.length);
});
