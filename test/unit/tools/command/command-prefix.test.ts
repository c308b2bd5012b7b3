import { describe, expect, it } from "vitest";
import { CommandSafety, isAllowedPrefix } from "../../../../src/tools/command/command-safety.js";

const script = (text: string) => ["bash", "-lc", text];

describe("a prefix that would approve everything", () => {
  it.each(
    `python3|python3 -|python3 -c|python|python -c|py|py -3|pythonw|pyw|pypy|pypy3|git|bash|bash -lc|bash -c|sh|sh -c|sh -lc|zsh|zsh -lc|/bin/zsh|/bin/zsh -lc|/bin/bash|/bin/bash -lc|pwsh|pwsh -Command|pwsh -c|powershell|powershell -Command|env|sudo|sudo apt install|node|node -e|perl|perl -e|ruby|ruby -e|php|php -r|lua|lua -e|osascript|npx|docker|git -C x|xargs rm|find . -exec|python3.11|python3.11 -c|perl5.36.0|lua5.4|setpriv|taskset 1|nsenter -t 1|runuser -u x|strace|timeout 5 npm test|npm --silent`.split(
      "|",
    ),
  )("is never offered: %s", (text) => {
    expect(isAllowedPrefix(text.split(" "))).toBe(false);
  });

  it("nor one of nothing", () => {
    expect(isAllowedPrefix([])).toBe(false);
    expect(isAllowedPrefix([""])).toBe(false);
  });

  it.each([
    "npm install",
    "npm test",
    "python3 -m pytest",
    "cargo",
    "git push",
    "node build.js",
    "docker ps",
    "touch",
  ])("unlike one that says something: %s", (text) => {
    expect(isAllowedPrefix(text.split(" "))).toBe(true);
  });
});

describe("a prefix covers", () => {
  const npm = [["npm", "install"]];

  it("commands that begin with its words", () => {
    expect(new CommandSafety(["npm", "install"]).isCovered(npm, "escalated")).toBe(true);
    expect(new CommandSafety(["npm", "install", "--save", "x"]).isCovered(npm, "escalated")).toBe(true);
    expect(new CommandSafety(script("npm install && npm 'install' y")).isCovered(npm, "escalated")).toBe(
      true,
    );
  });

  it.each([
    "npm",
    "npm installer",
    "npm run install",
    "npx npm install",
    "npm install; evil",
    "npm install > x",
    "npm install $(evil)",
    "X=1 npm install",
    "npm install &",
    "npm instal*",
  ])("and not: %s", (text) => {
    expect(new CommandSafety(script(text)).isCovered(npm, "escalated")).toBe(false);
  });

  it("no pattern, though the prefix is spelled as it is: the shell puts anything in its place", () => {
    expect(new CommandSafety(script("npm install *")).isCovered([["npm", "install", "*"]], "escalated")).toBe(
      false,
    );
    expect(
      new CommandSafety(script("npm install '*'")).isCovered([["npm", "install", "*"]], "escalated"),
    ).toBe(true);
  });

  it("in the sandbox with safe commands beside them, outside of it without", () => {
    expect(new CommandSafety(script("cd x && npm install | tail -5")).isCovered(npm, "sandbox")).toBe(true);
    expect(new CommandSafety(script("cd x && npm install | tail -5")).isCovered(npm, "escalated")).toBe(
      false,
    );
  });

  it("nothing dangerous", () => {
    expect(new CommandSafety(["rm", "-f", "x"]).isCovered([["rm"]], "sandbox")).toBe(false);
    expect(new CommandSafety(script("npm install && rm -rf x")).isCovered([...npm, ["rm"]], "sandbox")).toBe(
      false,
    );
  });
});

describe("the prefix that is offered", () => {
  const offer = (text: string, proposed: string[] | null = null) =>
    new CommandSafety(script(text)).prefixToOffer({ proposed, place: "escalated" });

  it("is the model's where it fits", () => {
    expect(offer("npm install x", ["npm", "install"])).toEqual(["npm", "install"]);
  });

  it.each([[["npm", "test"]], [["npm"]], [[]], [["bash", "-lc"]]])(
    "is none where the model's does not: %j",
    (proposed) => {
      expect(offer("npm install x", proposed)).toBeNull();
    },
  );

  it.each([
    ["npm test -- --watch=false", "npm test"],
    ["npm install x", "npm install"],
    ["npm run test:unit -- a.test.ts", "npm run test:unit"],
    ["git commit -m 'a long story'", "git commit"],
    ["cargo build --release", "cargo build"],
    ["go test ./...", "go test"],
    ["make test V=1", "make test"],
    ["python3 -m pytest -q tests/a.py", "python3 -m pytest"],
    [".venv/bin/pytest -q tests/a.py", ".venv/bin/pytest"],
    ["eslint --fix src", "eslint"],
  ])("is the program and its word for a task where the model proposes none: %s", (text, prefix) => {
    expect(offer(text)).toEqual(prefix.split(" "));
  });

  it.each([
    "python3 build.py --fast",
    "python3 -m timeit pass",
    "node build.js x",
    "npm exec cowsay hi",
    "npx cowsay hi",
    "git push origin main",
    "git rebase -x evil main",
    "git config core.pager evil",
    "docker run x",
    "make SHELL=evil test",
    "cargo run x",
    "curl https://example.org/a",
    "mkdir a",
    "./run x",
    "xvfb-run npm test",
  ])("is the whole command where anything could stand behind a shorter one: %s", (text) => {
    expect(offer(text)).toEqual(text.split(" "));
  });

  it.each(["sudo npm test", "env npm test", "bash", "python3", "python3 -c 'print(1)'", "ssh x npm test"])(
    "is none where even the whole command begins with too much: %s",
    (text) => {
      expect(offer(text)).toBeNull();
    },
  );

  it("is none for what is no single plain command, or looks dangerous", () => {
    expect(offer("npm install x && npm test")).toBeNull();
    expect(offer("npm install *")).toBeNull();
    expect(offer("rm -rf x")).toBeNull();
  });
});

it("a single command is the same however its shell is spelled, and a script is itself", () => {
  expect(new CommandSafety(script("npm 'test'")).single).toEqual(["npm", "test"]);
  expect(new CommandSafety(["npm", "test"]).single).toEqual(["npm", "test"]);
  expect(new CommandSafety(["/bin/sh", "-c", "npm test"]).single).toEqual(["npm", "test"]);
  const two = script("npm test; ls");
  expect(new CommandSafety(two).single).toBeNull();
  // What the pattern stands for may be something else the next time.
  const pattern = script("npm test *");
  expect(new CommandSafety(pattern).single).toBeNull();
});
